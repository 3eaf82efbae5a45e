from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.questions import choose_questions, coverage, coverage_curve, nearest_chunks

# Four questions over eight chunks; the third covers most that is new after the first.
NEAREST = np.array([[0, 1, 2], [0, 1, 3], [4, 5, 6], [2, 3, 4]])


def test_coverage_is_the_share_of_chunks_near_to_some_question() -> None:
    assert coverage(NEAREST, 8) == 7 / 8
    assert coverage_curve(NEAREST, 8) == pytest.approx([3 / 8, 4 / 8, 7 / 8, 7 / 8])


def test_the_greedy_choice_takes_the_largest_gain_first() -> None:
    chosen = choose_questions(NEAREST, 8, budget=3)
    assert chosen.positions == (0, 2, 1)
    assert chosen.coverage == pytest.approx((3 / 8, 6 / 8, 7 / 8))


def test_a_budget_above_the_number_of_questions_gives_all_of_them() -> None:
    assert sorted(choose_questions(NEAREST, 8, budget=99).positions) == [0, 1, 2, 3]


@settings(max_examples=60)
@given(st.integers(2, 7), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_every_choice_gains_most_and_the_bound_of_greedy_holds(questions: int, k: int, budget: int, seed: int) -> None:
    nearest = np.random.default_rng(seed).permuted(np.tile(np.arange(9), (questions, 1)), axis=1)[:, :k]
    chosen = choose_questions(nearest, 9, budget)
    covered: set[int] = set()
    for position, share in zip(chosen.positions, chosen.coverage, strict=True):
        gains = [len(set(row) - covered) for row in nearest.tolist()]  # 0 for the ones chosen already
        assert gains[position] == max(gains)
        covered |= set(nearest[position].tolist())
        assert share == pytest.approx(len(covered) / 9)
    best = max(
        len(set(nearest[list(subset)].ravel().tolist()))
        for subset in combinations(range(questions), min(budget, questions))
    )
    assert len(covered) >= (1 - 1 / np.e) * best - 1e-9


@given(st.integers(0, 2**32 - 1))
def test_the_curve_never_falls_and_ends_at_the_coverage(seed: int) -> None:
    nearest = np.random.default_rng(seed).integers(0, 20, size=(6, 3))
    curve = coverage_curve(nearest, 20)
    assert (np.diff(curve) >= 0).all()
    assert curve[-1] == pytest.approx(len(set(nearest.ravel().tolist())) / 20)


def test_the_nearest_chunks_are_those_with_the_highest_cosine() -> None:
    chunks = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6]], dtype=np.float32)
    questions = np.array([[1, 0], [0, 1]], dtype=np.float32)
    assert nearest_chunks(questions, chunks, 2).tolist() == [[0, 3], [1, 2]]
    assert nearest_chunks(questions, chunks, 3).tolist() == [[0, 3, 2], [1, 2, 3]]
    assert nearest_chunks(questions, chunks, 99).shape == (2, 4)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_nearest_chunks_agree_with_a_full_sort(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    questions, chunks = (rng.normal(size=(n, 2)).astype(np.float32) for n in (1500, 9))
    expected = np.argsort(-(questions @ chunks.T), axis=1, kind="stable")[:, :k]
    assert nearest_chunks(questions, chunks, k).tolist() == expected.tolist()


def test_what_cannot_be_covered_is_refused() -> None:
    rows = np.ones((1, 2), dtype=np.float32)
    with pytest.raises(EvaluationError, match="1 questions and 0 chunks"):
        nearest_chunks(rows, np.ones((0, 2), dtype=np.float32), 1)
    with pytest.raises(ValueError, match="k is 0"):
        nearest_chunks(rows, rows, 0)
    with pytest.raises(ValueError, match="budget is 0"):
        choose_questions(NEAREST, 8, 0)
