"""A few questions of people and a test set decide together; a test set that is off is shut out; little data stays
open."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import calibrated
from kraq_dspy.eval.calibration import _t_quantile, calibrated_rows
from kraq_dspy.eval.rows import ResultRow

NAMES = [f"s{number}" for number in range(8)]
LEVELS = np.linspace(0.2, 0.9, 8)


def drawn(levels: NDArray[np.float64], n: int, seed: int) -> dict[str, list[float]]:
    """Scores of 0 and 1 with these means: hard questions are hard for all systems."""
    rng = np.random.default_rng(seed)
    hardness = rng.random((n, 1))
    noise = rng.random((n, len(levels)))
    found = (hardness + noise) / 2 < stats.triang(0.5).ppf(levels)
    return dict(zip(NAMES, found.T.astype(float).tolist(), strict=False))


def n_decided(people: dict[str, list[float]], testset: dict[str, list[float]]) -> int:
    joint = calibrated(people, testset)
    return len(joint.pairs) - len(joint.undecided)


def test_an_testset_that_agrees_decides_more_than_ten_questions_alone() -> None:
    people, testset = drawn(LEVELS, 10, 1), drawn(LEVELS, 120, 2)
    shuffled = dict(zip(NAMES, [testset[name] for name in np.random.default_rng(3).permutation(NAMES)], strict=True))

    joint = calibrated(people, testset)

    assert joint.is_open
    assert joint.weight > 0.4
    assert "agrees with 10 human questions" in joint.agreement
    assert n_decided(people, testset) > n_decided(people, shuffled)


def test_of_an_testset_and_own_questions_the_one_that_agrees_has_the_weight() -> None:
    people, right, turned = drawn(LEVELS, 20, 1), drawn(LEVELS, 120, 2), drawn(LEVELS[::-1], 60, 3)

    own_agrees, testset_agrees = calibrated(people, turned, right), calibrated(people, right, turned)

    assert own_agrees.own_share > 0.9
    assert testset_agrees.own_share < 0.1
    assert (own_agrees.n_testset, own_agrees.n_own) == (60, 120)
    assert own_agrees.pair("s7", "s0").is_decided
    assert "and the index's own questions (120) agree with 20 human questions" in own_agrees.agreement
    assert "% of that the own questions" in own_agrees.agreement


def test_an_testset_on_another_scale_leaves_the_scale_to_people() -> None:
    """As on meetings, where systems differ three times as much by the test set as by human questions."""
    near = 0.5 + (LEVELS - 0.55) / 4
    covered = []
    for seed in range(40):
        for (first, second), pair in calibrated(drawn(near, 20, seed), drawn(LEVELS, 120, 500 + seed)).pairs.items():
            true = near[NAMES.index(first)] - near[NAMES.index(second)]
            covered.append(pair.interval.low <= true <= pair.interval.high)
    assert np.mean(covered) > 0.9


def test_an_testset_with_its_order_turned_is_shut_out_and_people_decide_alone() -> None:
    joint = calibrated(drawn(LEVELS, 20, 1), drawn(LEVELS[::-1], 120, 2))

    assert (joint.is_open, joint.weight, joint.bias) == (False, 0.0, None)
    assert joint.pair("s7", "s0").interval.estimate > 0
    assert "decide alone" in joint.agreement


def test_intervals_cover_what_people_would_say_of_all_questions() -> None:
    covered = []
    for seed in range(60):
        bias = np.random.default_rng(seed).normal(0, 0.1, 8)
        testset = drawn(np.clip(LEVELS + bias, 0.05, 0.95), 120, 1000 + seed)
        for (first, second), pair in calibrated(drawn(LEVELS, 10, seed), testset).pairs.items():
            true = LEVELS[NAMES.index(first)] - LEVELS[NAMES.index(second)]
            covered.append(pair.interval.low <= true <= pair.interval.high)
    assert np.mean(covered) > 0.9


def test_saturated_scores_decide_nothing_and_have_intervals() -> None:
    people = {name: [1.0] * 5 for name in NAMES}

    joint = calibrated(people, {name: [1.0] * 100 for name in NAMES})

    assert len(joint.undecided) == len(joint.pairs)
    widths = [pair.interval.high - pair.interval.low for pair in joint.pairs.values()]
    assert all(0.02 < width < 0.7 for width in widths)  # of five questions, each is worth .2
    assert all(pair.more_questions is None for pair in joint.pairs.values())


def test_two_systems_are_judged_by_the_paired_rule_alone() -> None:
    joint = calibrated({"a": [1] * 5 + [0] * 5, "b": [0] * 10}, {"a": [1] * 50, "b": [0] * 50})

    [pair] = joint.pairs.values()
    assert not pair.is_decided  # five wins of five: p = 2 / 32
    assert pair.more_questions == 1  # six wins of six: p = 2 / 64
    assert "Fewer than 3 systems" in joint.agreement


def test_a_pair_may_be_named_either_way_round() -> None:
    joint = calibrated(drawn(LEVELS, 10, 1), drawn(LEVELS, 120, 2))
    forth, back = joint.pair("s0", "s7"), joint.pair("s7", "s0")

    assert (forth.interval.low, forth.interval.high) == (-back.interval.high, -back.interval.low)
    with pytest.raises(EvaluationError, match="no pair of 's0' and 'x'"):
        joint.pair("s0", "x")


@pytest.mark.parametrize(
    ("people", "testset", "message"),
    [
        ({"a": [1] * 5, "b": [1] * 5}, {"a": [1] * 9, "c": [1] * 9}, "Only one side has scores of 'b', 'c'"),
        ({"a": [1] * 5, "b": [1] * 4}, {"a": [1] * 9, "b": [1] * 9}, "4 to 5 scores"),
        ({"a": [1] * 2, "b": [1] * 2}, {"a": [1] * 9, "b": [1] * 9}, "2 scores by human questions; expected 3"),
        ({"a": [7] * 5, "b": [1] * 5}, {"a": [1] * 9, "b": [1] * 9}, "not all between 0 and 1"),
        ({"a": [1] * 5}, {"a": [1] * 9}, "expected two at least"),
    ],
)
def test_scores_that_cannot_be_joined_are_refused(
    people: dict[str, list[float]], testset: dict[str, list[float]], message: str
) -> None:
    with pytest.raises(EvaluationError, match=message):
        calibrated(people, testset)


def test_rows_are_joined_over_the_questions_that_the_metric_is_defined_for() -> None:
    def rows(n: int) -> list[ResultRow]:
        made = [
            ResultRow(f"q{i}", name, metrics={"recall": float(i % 2)}) for i in range(n) for name in ("a", "b", "c")
        ]
        return [*made, *(ResultRow("none", name, extra={"undefined": ["recall"]}) for name in ("a", "b", "c"))]

    joint = calibrated_rows(rows(6), rows(40), "recall")

    assert (joint.n_people, joint.n_testset) == (6, 40)


@pytest.mark.parametrize("degrees", [11, 14, 19, 49])
def test_students_quantile_is_right_to_three_digits(degrees: int) -> None:
    assert _t_quantile(0.975, degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=0.001)
