import pytest

from kraq_dspy.stores.tags import alternatives, tags_of


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
