import numpy as np
import pytest

from kraq_dspy.ports import Vectors
from kraq_dspy.retrievers.scale_of_cosines import UNRELATED, ScaleOfCosines


class Store:
    """Passages in a plane whose cosines with the question (1, 0) are given; counts how often it is read."""

    def __init__(self, cosines: list[float]) -> None:
        self.rows = np.array([[cosine, (1 - cosine**2) ** 0.5] for cosine in cosines], np.float32)
        self.read = 0

    def ids(self) -> set[str]:
        return set(map(str, range(len(self.rows))))

    def vectors(self, ids: list[str]) -> Vectors:
        self.read += 1
        return self.rows[[int(name) for name in ids]]


QUESTION = np.array([1, 0], np.float32)


def test_cosines_that_all_lie_high_begin_where_unrelated_passages_lie() -> None:
    scale = ScaleOfCosines(Store([0.7] * 90 + [0.8] * 9 + [0.9]))  # type: ignore[arg-type]

    assert scale.zero(QUESTION) == pytest.approx(0.7 - UNRELATED)
    np.testing.assert_allclose(
        scale(np.array([0.7, 0.8, 0.9, 1.0], np.float32), QUESTION), [0.4, 0.6, 0.8, 1.0], atol=1e-6
    )


def test_cosines_of_an_encoder_that_uses_the_whole_scale_stay_and_no_passage_is_read() -> None:
    store = Store([0.1] * 99 + [0.6])
    cosines = np.array([0.1, 0.3, 0.6], np.float32)

    assert ScaleOfCosines(store)(cosines, QUESTION) is cosines  # type: ignore[arg-type]
    assert store.read == 0


def test_a_few_good_candidates_of_such_an_encoder_stay_too() -> None:
    scale = ScaleOfCosines(Store([0.1] * 99 + [0.6]))  # type: ignore[arg-type]

    np.testing.assert_array_equal(scale(np.array([0.5, 0.6], np.float32), QUESTION), np.array([0.5, 0.6], np.float32))


def test_the_sample_is_read_once() -> None:
    store = Store([0.7] * 1000)
    scale = ScaleOfCosines(store)  # type: ignore[arg-type]
    for _ in range(3):
        scale(np.array([0.8], np.float32), QUESTION)
    assert store.read == 1
