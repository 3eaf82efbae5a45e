"""Tests the words and the tags that a point is made of."""

import doctest

import pytest

from kraq_dspy.asset.store.vectors import points
from kraq_dspy.asset.store.vectors.points import alternatives, document_weights, query_weights, tags_of, words_of


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


def test_a_payload_becomes_one_tag_for_each_value() -> None:
    assert tags_of({"year": 1999, "lang": ["en", "fr"]}) == ['"year"=1999', '"lang"="en"', '"lang"="fr"']


def test_equal_numbers_have_equal_tags_and_true_is_not_one() -> None:
    assert tags_of({"n": 1.0}) == tags_of({"n": 1})
    assert tags_of({"n": True}) != tags_of({"n": 1})
    assert tags_of({"n": "1"}) != tags_of({"n": 1})


def test_no_field_and_value_can_pass_for_another() -> None:
    assert tags_of({'a"="b': "c"}) != tags_of({"a": '"b="c'})
    assert tags_of({"caf\udce9": "x"}) != tags_of({"café": "x"})


def test_a_long_value_is_told_apart_from_another_long_value() -> None:
    (one,), (other,) = tags_of({"abstract": "x" * 10_000}), tags_of({"abstract": "x" * 9_999})

    assert one != other
    assert len(one) < 100


def test_a_filter_offers_alternatives_for_each_field() -> None:
    assert alternatives({"lang": ["en", "fr"], "year": 1999}) == [['"lang"="en"', '"lang"="fr"'], ['"year"=1999']]
    assert alternatives(None) == []


def test_a_value_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Cannot filter 'when' by None"):
        alternatives({"when": None})
