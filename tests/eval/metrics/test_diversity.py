from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.retrieval import distinct_documents, hit_distance, mean_pairwise_distance
from kraq_dspy.records import Chunk, Hit


def hit(chunk_id: str, document_id: str, text: str = "") -> Hit:
    return Hit(Chunk(chunk_id, document_id, 0, 0, len(text), text, 1), 1.0, "q")


def test_distance_is_the_mean_over_all_pairs() -> None:
    # Two equal rows and one at right angles: distances 0, 1, 1.
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert mean_pairwise_distance(vectors) == pytest.approx(2 / 3)


def test_opposite_hits_are_at_distance_two_and_equal_ones_at_zero() -> None:
    assert mean_pairwise_distance(np.array([[1, 0], [-1, 0]], dtype=np.float32)) == pytest.approx(2.0)
    assert mean_pairwise_distance(np.array([[0.6, 0.8]] * 5, dtype=np.float32)) == pytest.approx(0.0, abs=1e-6)


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_it_agrees_with_the_sum_over_pairs(n: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(n, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    expected = np.mean([1 - rows[i] @ rows[j] for i in range(n) for j in range(i)])
    assert mean_pairwise_distance(rows.astype(np.float32)) == pytest.approx(expected, abs=1e-5)


def test_hits_are_compared_by_their_passages(keyword_embedder: Callable[..., Any]) -> None:
    embedder = keyword_embedder("rome", "oslo")
    assert hit_distance([hit("1", "a", "rome"), hit("2", "b", "oslo")], embedder) == pytest.approx(1.0)


def test_documents_are_counted_once() -> None:
    hits = [hit("1", "a"), hit("2", "a"), hit("3", "b")]
    assert distinct_documents(hits) == 2
    assert distinct_documents([]) == 0


def test_one_hit_or_a_nan_vector_has_no_distance() -> None:
    with pytest.raises(EvaluationError, match=r"undefined for 1 hit\(s\)"):
        mean_pairwise_distance(np.ones((1, 2), dtype=np.float32))
    with pytest.raises(EvaluationError, match="Row 1: the vector holds NaN"):
        mean_pairwise_distance(np.array([[1, 0], [np.nan, 0]], dtype=np.float32))
