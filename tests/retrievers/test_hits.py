"""Tests that filters mean what they mean to the stores, and how hits are ordered."""

import pytest

from kraq_dspy.extend import best_first, matches
from kraq_dspy.ports import Filters
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.retrievers.hits import falling

CHUNK = Chunk("id", "doc", 0, 0, 1, "x", 1, metadata={"year": 1999, "lang": "en", "draft": True})


@pytest.mark.parametrize(
    ("filters", "met"),
    [
        (None, True),
        ({}, True),
        ({"document_id": "doc"}, True),
        ({"document_id": ["other", "doc"], "lang": "en"}, True),
        ({"year": 1999.0}, True),
        ({"year": "1999"}, False),
        ({"draft": True}, True),
        ({"draft": 1}, False),
        ({"lang": []}, False),
        ({"unknown": 1}, False),
    ],
)
def test_filters_mean_what_they_mean_to_the_stores(filters: Filters, met: bool) -> None:
    assert matches(CHUNK, filters) is met


def test_scores_are_lowered_to_the_one_before() -> None:
    hits = [Hit(CHUNK, score, "q") for score in (0.9, 0.4, 0.6, 0.1)]
    assert [hit.score for hit in falling(hits)] == [0.9, 0.4, 0.4, 0.1]
    assert falling([]) == []


def test_equal_scores_come_in_the_order_of_ids() -> None:
    assert best_first({"b": 1.0, "c": 2.0, "a": 1.0}, 2) == [("c", 2.0), ("a", 1.0)]
