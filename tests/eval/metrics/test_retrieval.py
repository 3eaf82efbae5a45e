"""Tests the scores of rankings against values worked out by hand."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import (
    all_supporting_at_k,
    average_precision,
    mrr,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    success_at_k,
)
from tests.lazily import Lazily

sklearn = Lazily("sklearn.metrics")
Metric = Callable[[set[str], list[str], int | None], float]
METRICS: list[Metric] = [
    recall_at_k,
    precision_at_k,
    success_at_k,
    all_supporting_at_k,
    mrr,
    average_precision,
    ndcg_at_k,
]

# Two of three gold ids are found, at the places 2 and 4 of 5.
GOLD = {"a", "b", "c"}
RANKED = ["x", "a", "y", "b", "z"]
LOG3, LOG5 = math.log2(3), math.log2(5)


@pytest.mark.parametrize(
    ("metric", "k", "expected"),
    [
        (recall_at_k, 5, 2 / 3),
        (recall_at_k, 2, 1 / 3),
        (recall_at_k, 1, 0),
        (precision_at_k, 5, 2 / 5),
        (precision_at_k, 2, 1 / 2),
        (precision_at_k, 10, 2 / 10),
        (precision_at_k, None, 2 / 5),
        (success_at_k, 2, 1),
        (success_at_k, 1, 0),
        (all_supporting_at_k, 5, 0),
        (mrr, None, 1 / 2),
        (mrr, 1, 0),
        (average_precision, None, (1 / 2 + 2 / 4) / 3),
        (average_precision, 3, (1 / 2) / 3),
        (ndcg_at_k, 5, (1 / LOG3 + 1 / LOG5) / (1 + 1 / LOG3 + 1 / 2)),
        (ndcg_at_k, 2, (1 / LOG3) / (1 + 1 / LOG3)),
    ],
)
def test_values_by_hand(metric: Metric, k: int | None, expected: float) -> None:
    assert metric(GOLD, RANKED, k) == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS)
def test_gold_alone_at_the_top_is_perfect(metric: Metric) -> None:
    assert metric({"a", "b"}, ["b", "a", "x"], 2) == 1


@pytest.mark.parametrize("metric", METRICS)
def test_nothing_found_is_zero(metric: Metric) -> None:
    assert metric({"a"}, ["x", "y"], 2) == 0
    assert metric({"a"}, [], 2) == 0
    assert metric({"a"}, [], None) == 0


@pytest.mark.parametrize("metric", METRICS)
def test_no_gold_is_an_error(metric: Metric) -> None:
    with pytest.raises(EvaluationError, match="no gold ids"):
        metric(set(), ["x"], 1)


@pytest.mark.parametrize("metric", METRICS)
def test_k_below_one_is_an_error(metric: Metric) -> None:
    with pytest.raises(ValueError, match="k is 0"):
        metric({"a"}, ["x"], 0)


def test_a_document_that_comes_twice_is_found_once_and_takes_two_places() -> None:
    ranked = ["a", "a", "b"]
    assert recall_at_k({"a", "b"}, ranked, 2) == 1 / 2
    assert precision_at_k({"a", "b"}, ranked, 2) == 1 / 2
    assert average_precision({"a", "b"}, ranked) == pytest.approx((1 + 2 / 3) / 2)
    assert recall_at_k({"a", "b"}, list(dict.fromkeys(ranked)), 2) == 1  # documents ranked instead of chunks


@given(
    relevant=st.lists(st.booleans(), min_size=2, max_size=30).filter(any),
    k=st.integers(1, 35),
)
def test_ndcg_and_average_precision_agree_with_scikit_learn(relevant: list[bool], k: int) -> None:
    ranked = [str(place) for place in range(len(relevant))]
    gold = {place for place, is_gold in zip(ranked, relevant, strict=True) if is_gold}
    truth, scores = np.array([relevant], dtype=float), -np.arange(len(relevant), dtype=float)[None, :]
    assert ndcg_at_k(gold, ranked, k) == pytest.approx(sklearn.ndcg_score(truth, scores, k=k))
    assert average_precision(gold, ranked) == pytest.approx(sklearn.average_precision_score(truth[0], scores[0]))


@given(
    gold=st.sets(st.sampled_from("abcdefgh"), min_size=1),
    ranked=st.lists(st.sampled_from("abcdefghxyz"), max_size=20),
    k=st.integers(1, 25),
)
def test_every_value_lies_between_zero_and_one(gold: set[str], ranked: list[str], k: int) -> None:
    for metric in METRICS:
        assert 0 <= metric(gold, ranked, k) <= 1
        assert 0 <= metric(gold, ranked, None) <= 1
