"""Tests the words and the tags that a point is made of."""

import doctest

import pytest

from kraq_dspy.asset.store.vectors import points
from kraq_dspy.asset.store.vectors.points import document_weights, query_weights, words_of


def test_the_examples_are_true() -> None:
    assert doctest.testmod(points) == (0, 2)


@pytest.mark.parametrize(
    "forms",
    ["cat cats", "bark barks barked barking", "pony ponies", "run runs running", "love loves loved loving",
     "class classes", "purr purrs purring", "Zürich ZURICH zu\u0308rich", "hyphen hy\u00adphen hyp\u200bhen",
     "ｆｕｌｌ full"],
)  # fmt: skip
def test_forms_of_a_word_are_one_word(forms: str) -> None:
    assert len(set(words_of(forms))) == 1


@pytest.mark.parametrize("text", ["bus bush", "his this", "sing sin", "king kin", "is as", "status statue"])
def test_short_and_other_words_stay_apart(text: str) -> None:
    words = words_of(f"{text} end")
    assert len(words) == len(set(words))


def test_words_are_told_apart_by_spaces_of_all_kinds() -> None:
    assert words_of("two\u00a0words\u2028three\u202fmore\u2011words") == words_of("two words three more words")


def test_a_word_weighs_less_in_a_longer_text_and_more_where_it_stands_twice() -> None:
    [cat] = query_weights("cat")
    once, twice, among = (document_weights(text)[cat] for text in ("cat", "cat cat", "cat dog bird fish"))
    assert twice > once > among
    assert query_weights("cat cat") == {cat: 1.0}
    assert document_weights("the of \ud800") == query_weights("") == {}
