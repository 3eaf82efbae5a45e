"""Tests that rows are grouped by where they lie, that some belong to two groups, and that none is too large."""

import numpy as np
from hypothesis import given, strategies as st

from kraq_dspy.indexing.prepare.raptor import soft_clusters


def blobs(*counts: int, apart: float = 5.0, seed: int = 0) -> np.ndarray:
    """Points around the corners of a simplex, `counts` of each, in order."""
    rng = np.random.default_rng(seed)
    rows = [
        apart * np.eye(len(counts), 12)[corner] + 0.1 * rng.normal(size=12)
        for corner, count in enumerate(counts)
        for _ in range(count)
    ]
    return np.array(rows, dtype=np.float32)


def test_groups_that_lie_apart_become_clusters() -> None:
    clusters = soft_clusters(blobs(8, 8, 8), [1] * 24, limit=10)
    assert sorted(map(tuple, clusters)) == [tuple(range(start, start + 8)) for start in (0, 8, 16)]


def test_rows_between_two_groups_belong_to_both() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(-1.5, 1, (100, 1)), rng.normal(1.5, 1, (100, 1))]).astype(np.float32)
    [low, high] = soft_clusters(points, [1] * 200, limit=150)
    shared = points[sorted(set(low) & set(high)), 0]
    assert 0 < len(shared) < 50
    assert np.abs(shared).max() < 1.5


def test_what_fits_into_one_summary_stays_together() -> None:
    assert soft_clusters(blobs(3, 3), [10] * 6, limit=60) == [[0, 1, 2, 3, 4, 5]]


def test_rows_that_are_all_alike_are_split_by_size() -> None:
    clusters = soft_clusters(np.ones((7, 4), dtype=np.float32), [10] * 7, limit=25)
    assert sorted(row for cluster in clusters for row in cluster) == list(range(7))
    assert all(len(cluster) <= 2 for cluster in clusters)


def test_a_row_that_is_too_long_is_alone_and_no_rows_are_no_clusters() -> None:
    assert [2] in soft_clusters(blobs(3), [1, 1, 99], limit=10)
    assert soft_clusters(np.zeros((0, 4), dtype=np.float32), [], limit=10) == []


def test_the_same_seed_gives_the_same_clusters() -> None:
    points = blobs(9, 5, 7, apart=0.3)
    assert soft_clusters(points, [1] * 21, limit=6, seed=3) == soft_clusters(points, [1] * 21, limit=6, seed=3)


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=25),
    st.integers(1, 60),
    st.integers(0, 5),
)
def test_every_row_is_somewhere_and_no_cluster_is_too_large(sizes: list[int], limit: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(len(sizes), 5)).astype(np.float32)
    clusters = soft_clusters(rows, sizes, limit, seed=seed)
    assert {row for cluster in clusters for row in cluster} == set(range(len(sizes)))
    assert all(len(cluster) == 1 or sum(sizes[row] for row in cluster) <= limit for cluster in clusters)
    assert clusters == sorted(clusters)
    assert len(clusters) == len(set(map(tuple, clusters)))
