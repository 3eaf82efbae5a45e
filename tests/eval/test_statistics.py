"""Tests intervals and p-values against scipy, by simulation, and by hand."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import bootstrap_difference, bootstrap_mean, compare, permutation_test
from kraq_dspy.eval.statistics import holm, paired_difference
from tests.lazily import Lazily

stats = Lazily("scipy.stats")


def test_the_interval_agrees_with_scipys_bca() -> None:
    values = np.random.default_rng(3).gamma(1.0, size=60)
    ours = bootstrap_mean(values, resamples=20_000)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=1).confidence_interval
    assert ours.estimate == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.low, abs=0.02)
    assert ours.high == pytest.approx(theirs.high, abs=0.02)
    assert ours.high - ours.estimate > ours.estimate - ours.low  # skewed to the right, as the scores are


def test_what_differs_by_rounding_alone_is_no_spread() -> None:
    interval = bootstrap_mean([0.0, 1e-12, 0.0, 0.0])
    assert (interval.method, interval.low) == ("Wilson score", 0.0)


def test_for_many_scores_the_interval_is_the_normal_one() -> None:
    values = np.random.default_rng(0).normal(0.6, 0.2, size=2000)
    interval = bootstrap_mean(values)
    half = 1.96 * values.std(ddof=1) / math.sqrt(2000)
    assert interval.low == pytest.approx(values.mean() - half, abs=0.0006)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.0006)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    intervals = [bootstrap_mean(rng.binomial(1, 0.7, size=80).astype(float), resamples=800) for _ in range(400)]
    covered = np.mean([interval.low <= 0.7 <= interval.high for interval in intervals])
    assert 0.92 <= covered <= 0.98  # 0.95 give or take three standard errors


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    values = np.random.default_rng(0).random(50)
    assert bootstrap_mean(values, seed=4) == bootstrap_mean(values, seed=4)
    assert bootstrap_mean(values, seed=4).low != bootstrap_mean(values, seed=5).low


@pytest.mark.parametrize(("score", "n"), [(1.0, 60), (1.0, 1), (0.0, 12), (0.5, 8)])
def test_where_all_scored_the_same_the_interval_is_wilsons(score: float, n: int) -> None:
    interval = bootstrap_mean([score] * n)
    expected = stats.binomtest(round(score * n), n).proportion_ci(method="wilson")
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_equal_scores_of_ones_own_range_have_an_interval_without_width() -> None:
    interval = bootstrap_mean([4.5, 4.5, 4.5])
    assert interval.low == interval.estimate == interval.high == pytest.approx(4.5)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.2, 1.0]), min_size=1, max_size=40))
def test_an_interval_excludes_0_exactly_if_the_paired_test_is_significant(differences: list[float]) -> None:
    system = [max(each, 0.0) for each in differences]
    baseline = [max(-each, 0.0) for each in differences]

    paired = paired_difference(system, baseline, resamples=1000)

    interval = paired.interval
    assert interval.low <= interval.estimate <= interval.high
    assert (interval.low > 0 or interval.high < 0) == (paired.test.p_value < 0.05) == paired.is_decided


def test_three_losses_of_sixty_decide_nothing_and_none_at_all_still_has_an_interval() -> None:
    losses = paired_difference([0.0] * 3 + [1.0] * 57, [1.0] * 60)
    assert (losses.test.p_value, losses.is_decided) == (0.25, False)
    assert losses.interval.low < -0.05 < 0 < losses.interval.high

    alike = paired_difference([1.0] * 60, [1.0] * 60).interval
    assert alike.high == -alike.low == pytest.approx(1.96 * math.sqrt(2) / 62, abs=1e-4)  # a win and a loss more


def test_the_interval_of_a_difference_covers_it_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(300):
        drawn = rng.random(40)
        wins, losses = drawn < 0.3, drawn > 0.9
        interval = paired_difference(wins.astype(float), losses.astype(float), resamples=600).interval
        covered.append(interval.low <= 0.2 <= interval.high)
    assert 0.93 <= np.mean(covered) <= 0.995


def test_a_wider_confidence_has_a_wider_interval() -> None:
    values = np.random.default_rng(0).random(50)
    assert bootstrap_mean(values, confidence=0.99).low < bootstrap_mean(values, confidence=0.9).low


def test_pairing_makes_the_interval_of_a_difference_narrow() -> None:
    baseline = np.random.default_rng(0).random(200)
    interval = bootstrap_difference(baseline + 0.1, baseline)
    assert interval.estimate == pytest.approx(0.1)
    assert interval.high - interval.low < 1e-6


def test_a_difference_the_other_way_has_the_mirrored_interval() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.random(100), rng.random(100)
    forth, back = bootstrap_difference(one, other), bootstrap_difference(other, one)
    assert forth.estimate == pytest.approx(-back.estimate)
    assert forth.low == pytest.approx(-back.high, abs=1e-9)


def exact_p_value(differences: list[float]) -> float:
    observed = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(value >= observed - 1e-9 for value in sums) / len(sums)


@given(st.lists(st.sampled_from([-1.0, -0.3, 0.0, 0.1, 0.2, 1.0]), min_size=1, max_size=8))
def test_few_questions_are_tested_exactly(differences: list[float]) -> None:
    test = permutation_test(differences, [0.0] * len(differences))
    assert test.p_value == pytest.approx(exact_p_value(differences))
    assert test.method == "paired randomisation, exact"


def test_five_wins_of_five_have_the_p_value_of_a_sign_test() -> None:
    assert permutation_test([1.0] * 5, [0.0] * 5).p_value == pytest.approx(2 / 32)


def test_as_many_swaps_as_resamples_are_all_tried() -> None:
    test = permutation_test([1.0] * 5, [0.0] * 5, resamples=32)
    assert (test.p_value, test.method) == (2 / 32, "paired randomisation, exact")

    test = permutation_test([1.0] * 5, [0.0] * 5, resamples=31)
    assert test.method == "paired randomisation, 31 resamples, seed 0"


def test_many_questions_are_tested_by_sampling_close_to_the_t_test() -> None:
    rng = np.random.default_rng(2)
    baseline = rng.random(300)
    system = baseline + rng.normal(0.02, 0.2, size=300)
    test = permutation_test(system, baseline, resamples=20_000)
    assert test.p_value == pytest.approx(stats.ttest_rel(system, baseline).pvalue, abs=0.015)
    assert "20000 resamples, seed 0" in test.method


def test_a_sampled_p_value_is_never_zero_and_swapping_sides_keeps_it() -> None:
    system, baseline = np.ones(40), np.zeros(40)
    assert permutation_test(system, baseline, resamples=999).p_value == 1 / 1000
    assert permutation_test(system, baseline).p_value == permutation_test(baseline, system).p_value


def test_no_difference_at_all_has_a_p_value_of_one() -> None:
    assert permutation_test([0.5, 0.5], [0.5, 0.5]).p_value == 1.0


def test_p_values_under_the_null_hypothesis_are_uniform() -> None:
    rng = np.random.default_rng(5)
    p_values = [permutation_test(rng.normal(size=30), rng.normal(size=30), resamples=400).p_value for _ in range(300)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_holm_multiplies_the_smallest_most_and_keeps_the_order() -> None:
    adjusted = holm({"a": 0.04, "b": 0.01, "c": 0.03})
    assert list(adjusted) == ["a", "b", "c"]
    assert adjusted == pytest.approx({"b": 0.03, "c": 0.06, "a": 0.06})
    assert holm({}) == {}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_never_lowers_a_p_value_nor_exceeds_bonferroni(p_values: list[float]) -> None:
    named = {str(i): p for i, p in enumerate(p_values)}
    for name, adjusted in holm(named).items():
        assert named[name] <= adjusted <= min(1.0, named[name] * len(p_values)) or adjusted <= max(p_values) * len(
            p_values
        )
        assert adjusted <= 1.0


def test_a_comparison_holds_both_means_their_difference_and_the_test() -> None:
    result = compare([1, 1, 1, 0, 1, 1], [0, 1, 0, 0, 1, 0])
    assert result.system.estimate == pytest.approx(5 / 6)
    assert result.baseline.estimate == pytest.approx(2 / 6)
    assert result.difference.estimate == pytest.approx(0.5)
    assert result.test.p_value == pytest.approx(2 / 8)


def test_bad_input_is_refused_by_row() -> None:
    nan = float("nan")
    with pytest.raises(EvaluationError, match="Row 1: the score is nan"):
        bootstrap_mean([0.5, nan])
    with pytest.raises(EvaluationError, match="There are no scores"):
        bootstrap_mean([])
    with pytest.raises(EvaluationError, match="system has 3 scores and the baseline 2; row 2 has no partner"):
        permutation_test([1, 0, 1], [1, 0])
    with pytest.raises(EvaluationError, match="Row 0: the baseline score is inf"):
        bootstrap_difference([1.0], [math.inf])
    with pytest.raises(EvaluationError, match="p-value of 'a' is nan"):
        holm({"a": nan})
    with pytest.raises(EvaluationError, match=r"shape \(1, 2\)"):
        bootstrap_mean([[1, 2]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="confidence is 95"):
        bootstrap_mean([1.0, 0.0], confidence=95)
