"""Tests that cosines of encoders that lie close together are spread over the scale of MiniLM."""

import numpy as np
import pytest

from kraq_dspy.ports import Vectors
from kraq_dspy.retrievers.scale_of_cosines import LOW, SPREAD, ScaleOfCosines


class Store:
    """Passages in a plane whose cosines with the question (1, 0) are given; counts how often it is read."""

    def __init__(self, cosines: list[float]) -> None:
        self.rows = np.array([[cosine, (1 - cosine**2) ** 0.5] for cosine in cosines], np.float32).reshape(-1, 2)
        self.read = 0

    def ids(self) -> set[str]:
        return set(map(str, range(len(self.rows))))

    def vectors(self, ids: list[str]) -> Vectors:
        self.read += 1
        return self.rows[[int(name) for name in ids]]


QUESTION = np.array([1, 0], np.float32)


def test_cosines_that_all_lie_high_are_spread_over_the_scale_of_minilm_in_their_order() -> None:
    scale = ScaleOfCosines(Store([0.70, 0.72, 0.74, 0.76] * 25))  # type: ignore[arg-type]
    spread = np.std([0.70, 0.72, 0.74, 0.76])

    low, one_more, best = scale(np.array([0.715, 0.715 + spread, 0.9], np.float32), QUESTION)

    assert low == pytest.approx(LOW, abs=1e-4)  # their lower quartile
    assert one_more == pytest.approx(LOW + SPREAD, abs=1e-4)
    assert best == pytest.approx(LOW + SPREAD * (0.9 - 0.715) / spread, abs=1e-4)


def test_cosines_of_an_encoder_that_uses_the_whole_scale_stay_and_no_passage_is_read() -> None:
    store = Store([0.1] * 99 + [0.6])
    cosines = np.array([0.1, 0.3, 0.6], np.float32)

    assert ScaleOfCosines(store)(cosines, QUESTION) is cosines  # type: ignore[arg-type]
    assert store.read == 0


def test_a_few_good_candidates_of_such_an_encoder_stay_too() -> None:
    scale = ScaleOfCosines(Store([0.1] * 99 + [0.6]))  # type: ignore[arg-type]

    np.testing.assert_array_equal(scale(np.array([0.5, 0.6], np.float32), QUESTION), np.array([0.5, 0.6], np.float32))


def test_the_sample_is_read_once() -> None:
    store = Store([0.7, 0.8] * 500)
    scale = ScaleOfCosines(store)  # type: ignore[arg-type]
    for _ in range(3):
        scale(np.array([0.8], np.float32), QUESTION)
    assert store.read == 1


def test_a_store_of_a_few_passages_or_of_equal_ones_says_nothing_about_an_encoder() -> None:
    cosines = np.array([0.7, 0.8], np.float32)

    for store in (Store([0.7, 0.8]), Store([0.7] * 100), Store([])):
        assert ScaleOfCosines(store)(cosines, QUESTION) is cosines  # type: ignore[arg-type]
