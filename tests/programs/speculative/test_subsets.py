"""Tests that passages about one thing share a cluster, and that each subset draws from all of them."""

import numpy as np
import pytest
from numpy.typing import NDArray

from kraq_dspy.programs.speculative.subsets import cluster, draw_subsets, kmeans
from tests.lazily import Lazily

clustering, metrics = Lazily("sklearn.cluster"), Lazily("sklearn.metrics")

TEXTS = ["apple pie", "apple tart", "rocket", "rocket engine", "tax law", "apple"]


def test_passages_about_one_thing_share_a_cluster(keyword_embedder) -> None:  # type: ignore[no-untyped-def]
    vectors = keyword_embedder("apple", "rocket", "tax").encode_passages([*TEXTS, "apple rocket rocket rocket"])
    assert cluster(vectors, 3) == (0, 0, 1, 1, 2, 0, 1)


def test_fewer_distinct_passages_than_clusters_make_as_many_clusters_as_there_are(keyword_embedder) -> None:  # type: ignore[no-untyped-def]
    vectors = keyword_embedder("apple", "rocket", "tax").encode_passages(TEXTS)
    assert cluster(vectors, 5) == (0, 0, 1, 1, 2, 0)


def test_more_clusters_than_passages_give_every_passage_its_own() -> None:
    assert cluster(np.eye(3, dtype=np.float32), 10) == (0, 1, 2)


def test_equal_passages_share_a_cluster_even_where_every_choice_is_a_tie() -> None:
    rows = np.eye(4, dtype=np.float32)[[0, 1, 2, 3, 0, 1, 2, 3]]
    labels = cluster(rows, 2)
    assert labels[:4] == labels[4:]
    assert set(labels) == {0, 1}


def test_rows_that_differ_in_the_last_bits_are_one_passage() -> None:
    row = np.full((1, 4), 0.5, dtype=np.float32)
    assert cluster(np.concatenate([row, row + 1e-7]), 2) == (0, 0)


def test_no_passages_make_no_clusters_and_one_empty_subset() -> None:
    assert cluster(np.zeros((0, 4), dtype=np.float32), 3) == ()
    assert draw_subsets((), 5) == [()]


def test_the_same_seed_gives_the_same_clusters_and_subsets_and_another_seed_other_subsets() -> None:
    rows = np.random.default_rng(1).normal(size=(20, 16)).astype(np.float32)
    labels = cluster(rows, 4, seed=3)
    assert labels == cluster(rows, 4, seed=3)
    assert draw_subsets(labels, 8, seed=3) == draw_subsets(labels, 8, seed=3)
    assert draw_subsets(labels, 8, seed=3) != draw_subsets(labels, 8, seed=4)


def test_every_subset_has_one_passage_from_every_cluster() -> None:
    labels = (0, 0, 1, 0, 2, 1, 2, 2)
    for subset in draw_subsets(labels, 10):
        assert sorted(labels[position] for position in subset) == [0, 1, 2]
        assert list(subset) == sorted(subset)


def test_subsets_are_different_and_no_more_than_the_clusters_allow() -> None:
    labels = (0, 0, 1, 1, 2)
    assert sorted(draw_subsets(labels, 10)) == [(0, 2, 4), (0, 3, 4), (1, 2, 4), (1, 3, 4)]
    assert len(set(draw_subsets(labels, 3))) == 3


def test_one_subset_may_be_all_that_is_wanted() -> None:
    [subset] = draw_subsets((0, 0, 1), 1)
    assert subset in [(0, 2), (1, 2)]


def test_a_thousand_passages_in_fifty_clusters_are_drawn_from_without_counting_all_subsets() -> None:
    labels = [position % 50 for position in range(1000)]
    assert len(set(draw_subsets(labels, 10))) == 10


@pytest.mark.parametrize(("k", "m"), [(0, 1), (1, 0)])
def test_no_clusters_or_no_subsets_are_refused(k: int, m: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        draw_subsets(cluster(np.eye(2, dtype=np.float32), k), m)


def test_clusters_are_those_that_scikit_learn_finds_where_they_are_clear() -> None:
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((3, 384))
    rows = np.array([centres[i % 3] + 0.6 * rng.standard_normal(384) for i in range(14)], dtype=np.float32)
    plain = clustering.KMeans(n_clusters=3, n_init=50, random_state=0).fit_predict(rows.astype(float))
    assert metrics.adjusted_rand_score(plain, cluster(rows, 3)) == 1.0
    assert len(set(cluster(rows, 3))) == 3


def inertia(rows: NDArray[np.float64], labels: list[int]) -> float:
    parts = [rows[np.array(labels) == label] for label in set(labels)]
    return float(sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts))


def test_where_they_are_not_clear_they_are_as_tight_as_those_of_fifty_starts_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    tighter = 0.0
    for _ in range(12):
        rows = rng.normal(size=(18, 64))
        theirs = clustering.KMeans(n_clusters=4, n_init=50, random_state=0).fit_predict(rows).tolist()
        tighter += inertia(rows, theirs) - inertia(rows, kmeans(rows, 4, seed=0))
    assert tighter > 0


def test_a_cluster_that_loses_its_rows_on_the_way_spoils_nothing() -> None:
    rows = np.array([[5, 5], [0, -4], [-5, -5], [-2, -2], [-3, 4], [-6, 3], [1, -2], [3, 4], [-1, -1]], dtype=float)
    assert len(set(kmeans(rows, 4, seed=0, n_init=50))) == 4  # some of these starts lose one
