"""Thanks, greetings and assent are told from questions."""

import pytest

from kraq_dspy.language.social_turns import social_kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ok great, thank you very much", "thanks"),
        ("Thanks for the help!", "thanks"),
        ("cool thx", "thanks"),
        ("Hello!", "greeting"),
        ("Good morning", "greeting"),
        ("Perfect.", "assent"),
    ],
)
def test_a_social_turn_has_its_kind(text: str, kind: str) -> None:
    assert social_kind(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Thanks! And who owns the mill?",
        "Who said thanks",
        "cool star",
        "great wall",
        "no",
        "thanks 12",
        "thanks " * 500,
    ],
)
def test_a_question_and_a_topic_have_none(text: str) -> None:
    assert social_kind(text) == ""
