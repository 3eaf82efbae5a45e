"""Tests how results are cut for an agent: page after page, and texts between words."""

from kraq_dspy.apps.mcp.tools import page
from kraq_dspy.apps.views import AgentPassage, shortened
from kraq_dspy.records import Chunk, Hit


def test_pages_follow_each_other_and_the_last_one_says_so() -> None:
    assert page("abcde", 0, 2) == (["a", "b"], 2)
    assert page("abcde", 2, 2) == (["c", "d"], 4)
    assert page("abcde", 4, 2) == (["e"], None)
    assert page("abcd", 2, 2) == (["c", "d"], None)
    assert page("abcde", 9, 2) == ([], None)


def test_text_is_cut_between_words_and_says_so() -> None:
    assert shortened("short", 10) == "short"
    assert shortened("one two three", 10) == "one two…"
    assert shortened("0123456789abc", 10) == "012345678…"
    long = Chunk("c", "d", 0, 0, 900, "word " * 180, 180)
    assert AgentPassage.of(Hit(long, 1.0, "q")).is_cut
    assert len(AgentPassage.of(Hit(long, 1.0, "q")).text) <= 700
