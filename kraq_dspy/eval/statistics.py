"""Tells a difference from chance: intervals and paired tests over per-question scores.

Scores come as arrays over the same questions in the same order. All randomness is a seed. Empty,
unequal, NaN or infinite input raises EvaluationError that names the row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import EvaluationError, counted

Scores = Sequence[float] | NDArray[np.float64]
RESAMPLES = 10_000
"""Bootstrap samples, and random choices of signs."""
_BLOCK_ELEMENTS = 4_000_000  # random numbers held at once: 32 MB


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the ends of its confidence interval. `n` questions, `resamples` bootstrap samples."""

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    resamples: int
    seed: int
    method: str = "BCa bootstrap"


@dataclass(frozen=True, slots=True)
class Test:
    """A two-sided test that `difference` (system - baseline) is zero."""

    difference: float
    p_value: float
    n: int
    method: str

    __test__ = False  # no test case, whatever pytest takes it for


@dataclass(frozen=True, slots=True)
class Comparison:
    """A system against a named baseline over the same questions."""

    system: Interval
    baseline: Interval
    difference: Interval
    test: Test


def bootstrap_mean(scores: Scores, *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """Bias-corrected and accelerated (BCa) bootstrap interval of the mean (Efron, 1987).

    BCa rather than percentile, because per-question scores are often skewed (most right, few wrong). If all scores are
    equal, so are the ends: a bootstrap cannot tell what it has not seen, which at small n says little.

    >>> bootstrap_mean([1, 1, 0, 1, 1, 1, 0, 1]).estimate
    0.75
    """
    values = _checked(scores)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must be between 0 and 1.")

    estimate = float(values.mean())
    low = high = estimate
    if np.ptp(values) > 1e-12 * max(1.0, float(np.abs(values).max())):
        rng = np.random.default_rng(seed)
        means = np.concatenate([
            values[rng.integers(0, len(values), (size, len(values)))].mean(axis=1)
            for size in _sizes_of_blocks(resamples, len(values))
        ])  # fmt: skip
        low, high = _bca_ends(values, means, confidence)
    return Interval(estimate, float(low), float(high), confidence, len(values), resamples, seed)


def _sizes_of_blocks(resamples: int, n: int) -> list[int]:
    """Resamples that are drawn at once, so that memory stays bounded."""
    most = max(1, _BLOCK_ELEMENTS // n)
    return [min(most, resamples - start) for start in range(0, resamples, most)]


def _bca_ends(values: NDArray[np.float64], means: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """The quantiles of the resampled `means` that Efron (1987) takes instead of the plain ones.

    The share of means below the estimate says how far they lie to one side of it; the skewness of the means with one
    value left out says how fast their spread grows (the acceleration).
    """
    normal = NormalDist()
    estimate = values.mean()
    below = ((means < estimate).mean() + (means <= estimate).mean()) / 2
    bias = normal.inv_cdf(min(max(below, 0.5 / len(means)), 1 - 0.5 / len(means)))

    without_one = (values.sum() - values) / (len(values) - 1)
    deviations = without_one.mean() - without_one
    acceleration = (deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5)

    shares = []
    for share in ((1 - confidence) / 2, (1 + confidence) / 2):
        shifted = bias + normal.inv_cdf(share)
        shares.append(normal.cdf(bias + shifted / (1 - acceleration * shifted)))
    low, high = np.quantile(means, shares)
    return float(low), float(high)


def bootstrap_difference(system: Scores, baseline: Scores, *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """BCa interval of mean(system) - mean(baseline), resampling questions, so that the pairs stay together.

    >>> bootstrap_difference([1, 1, 0, 1], [0, 1, 0, 0]).estimate
    0.5
    """
    return bootstrap_mean(_differences(system, baseline), resamples=resamples, seed=seed)


def permutation_test(system: Scores, baseline: Scores, *, resamples: int = RESAMPLES, seed: int = 0) -> Test:
    """Paired randomisation test of the mean difference, two-sided (Noreen, 1989; for retrieval Smucker et al., 2007).

    Under the null hypothesis, system and baseline swap their scores on a question at no cost. Exact where the swaps of
    the questions on which they differ are fewer than `resamples`; else (count + 1) / (resamples + 1), which is never 0
    (Phipson and Smyth, 2010).

    >>> permutation_test([1, 1, 0, 1], [0, 1, 0, 0]).p_value
    0.5
    """
    differences = _differences(system, baseline)
    changed = differences[differences != 0]
    p_value, method = 1.0, "paired randomisation, exact"
    if len(changed) > 1:
        p_value = _share_of_larger_sums(changed, resamples, np.random.default_rng(seed))
    if 2 ** min(len(changed), 63) > resamples:
        method = f"paired randomisation, {resamples} resamples, seed {seed}"
    return Test(float(differences.mean()), float(p_value), len(differences), method)


def _share_of_larger_sums(differences: NDArray[np.float64], resamples: int, rng: np.random.Generator) -> float:
    """The share of choices of signs, of all or of `resamples` and the given one, whose sum is at
    least as far from 0."""
    n = len(differences)
    if 2 ** min(n, 63) <= resamples:
        choices = np.arange(2**n)[:, None] >> np.arange(n) & 1
        return float(_are_as_far(choices, differences).mean())

    larger = 0
    for size in _sizes_of_blocks(resamples, n):
        larger += int(_are_as_far(rng.integers(0, 2, (size, n), np.int8), differences).sum())
    return (larger + 1) / (resamples + 1)


def _are_as_far(choices: NDArray[np.integer[Any]], differences: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether a sum with these signs (1 swaps the two systems) is at least as far from 0 as the sum without swaps.

    Sums that are equal in arithmetic differ in their last bits, which are cut off.
    """
    sums = np.abs(differences.sum() - 2 * (choices @ differences)).round(9)
    as_far: NDArray[np.bool_] = sums >= np.abs(differences.sum()).round(9)
    return as_far


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values adjusted for their number, in the given order (Holm, 1979): compare them with the level as they are.

    Holds whatever the dependence between the tests. Raises EvaluationError for a value outside [0, 1].
    """
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, (name, p_value) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        if not 0 <= p_value <= 1:  # NaN too
            raise EvaluationError(f"The p-value of {name!r} is {p_value}; expected 0 to 1.")
        highest = max(highest, min(1.0, p_value * (len(p_values) - rank)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def compare(system: Scores, baseline: Scores, *, seed: int = 0) -> Comparison:
    """Both means and their difference with intervals, and the paired randomisation test.

    >>> compare([1, 1, 0, 1], [0, 1, 0, 0]).difference.estimate
    0.5
    """
    return Comparison(
        bootstrap_mean(system, seed=seed),
        bootstrap_mean(baseline, seed=seed),
        bootstrap_difference(system, baseline, seed=seed),
        permutation_test(system, baseline, seed=seed),
    )


def _differences(system: Scores, baseline: Scores) -> NDArray[np.float64]:
    checked_system, checked_baseline = _checked(system, "system"), _checked(baseline, "baseline")
    if len(checked_system) != len(checked_baseline):
        short = min(len(checked_system), len(checked_baseline))
        raise EvaluationError(
            f"The system has {counted(len(checked_system), 'score')} and the baseline {len(checked_baseline)}; "
            f"row {short} has no "
            "partner. A paired comparison takes the same questions in the same order."
        )
    return checked_system - checked_baseline


def _checked(scores: Scores, name: str = "") -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64)
    whose = f"{name} " if name else ""
    if values.ndim != 1:
        raise EvaluationError(f"The {whose}scores have the shape {values.shape}; expected one score for each question.")
    if not len(values):
        raise EvaluationError(f"There are no {whose}scores.")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise EvaluationError(f"Row {row}: the {whose}score is {values[row]}; leave failed rows out, or score them.")
    return values
