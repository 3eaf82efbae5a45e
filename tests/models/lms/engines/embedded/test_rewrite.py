"""Searches by the embedded model; every expected value can be read off the question."""

import pytest

from kraq_dspy.models.lms.engines.embedded.rewrite import clearer, core, keywords, statement

QUESTION = "Who wrote the poem Don Juan before Ada Lovelace was born?"


def test_politeness_goes() -> None:
    assert clearer("Hi, could you please tell me who wrote Don Juan?") == "Who wrote Don Juan?"
    assert clearer("Who wrote Don Juan?") == "Who wrote Don Juan?"


def test_keywords_are_names_in_full_then_words_that_carry_meaning() -> None:
    assert keywords(QUESTION) == ["Don Juan", "Ada Lovelace", "wrote", "poem", "born"]
    assert core("Who wrote it, and a b c d e f g h i j k?").count(" ") <= 5


def test_a_statement_is_what_an_answer_would_be_told_with() -> None:
    assert statement("Who wrote Don Juan?") == "Wrote Don Juan."
    assert statement("In which city was Ada Lovelace born?") == "City was Ada Lovelace born."


@pytest.mark.parametrize("make", [clearer, statement])
def test_even_a_bare_question_word_gives_a_search(make: object) -> None:
    assert callable(make)
    assert make("Who?")
