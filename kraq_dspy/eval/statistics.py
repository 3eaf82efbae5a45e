"""Tells a difference from chance: intervals and paired tests over per-question scores.

Scores come as arrays over the same questions in the same order. All randomness is a seed. Empty,
unequal, NaN or infinite input raises EvaluationError that names the row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import EvaluationError

Scores = Sequence[float] | NDArray[np.float64]
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


def bootstrap_mean(scores: Scores, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Interval:
    """Bias-corrected and accelerated (BCa) bootstrap interval of the mean (Efron, 1987, sections 3 and 7).

    BCa rather than percentile, because per-question scores are often skewed (most right, few wrong). If all scores are
    equal, so are the ends: a bootstrap cannot tell what it has not seen, which at small n says little.
    """
    values = _checked(scores)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must be between 0 and 1.")
    _check_resamples(resamples)
    n = len(values)
    estimate = float(values.mean())

    def interval(low: float, high: float) -> Interval:
        return Interval(estimate, low, high, confidence, n, resamples, seed)

    if np.ptp(values) == 0:
        return interval(estimate, estimate)
    means = _resampled_means(values, resamples, seed)
    normal = NormalDist()
    tolerance = 1e-12 * max(1.0, float(np.abs(values).max()))
    below, level = np.mean(means < estimate - tolerance), np.mean(np.abs(means - estimate) <= tolerance)
    share = float(below + level / 2)
    bias = normal.inv_cdf(min(max(share, 1 / (resamples + 1)), resamples / (resamples + 1)))
    deviations = values - values.mean()
    # The jackknife influences of a mean are its deviations over n - 1, and the factor cancels.
    acceleration = float((deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5))
    quantiles = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        shifted = bias + normal.inv_cdf(tail)
        quantiles.append(normal.cdf(bias + shifted / (1 - acceleration * shifted)))
    low, high = np.quantile(means, quantiles)
    return interval(float(low), float(high))


def bootstrap_difference(system: Scores, baseline: Scores, *, resamples: int = 10_000, seed: int = 0) -> Interval:
    """BCa interval of mean(system) - mean(baseline), resampling questions, so that the pairs stay together."""
    return bootstrap_mean(_differences(system, baseline), resamples=resamples, seed=seed)


def permutation_test(system: Scores, baseline: Scores, *, resamples: int = 10_000, seed: int = 0) -> Test:
    """Paired randomisation test of the mean difference, two-sided (Noreen, 1989; for retrieval Smucker et al., 2007).

    Under the null hypothesis, system and baseline swap their scores on a question at no cost. Exact where the swaps of
    the questions on which they differ are fewer than `resamples`; else (count + 1) / (resamples + 1), which is never 0
    (Phipson and Smyth, 2010).
    """
    _check_resamples(resamples)
    differences = _differences(system, baseline)
    changed = differences[differences != 0]
    observed = abs(changed.sum())
    # Sums that are equal in arithmetic differ in their last bits.
    limit = observed - 1e-9 * max(1.0, float(np.abs(changed).sum()))
    if 2 ** min(len(changed), 63) <= resamples:
        signs = 1 - 2 * ((np.arange(2 ** len(changed))[:, None] >> np.arange(len(changed))) & 1)
        p_value = float(np.mean(np.abs(signs @ changed) >= limit))
        method = "paired randomisation, exact"
    else:
        rng = np.random.default_rng(seed)
        count = 0
        for size in _blocks(resamples, len(changed)):
            flips = rng.integers(0, 2, size=(size, len(changed)), dtype=np.int8) * np.int8(2) - np.int8(1)
            count += int((np.abs(flips @ changed) >= limit).sum())
        p_value = (count + 1) / (resamples + 1)
        method = f"paired randomisation, {resamples} resamples, seed {seed}"
    return Test(float(differences.mean()), p_value, len(differences), method)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values adjusted for their number, in the given order (Holm, 1979): compare them with the level as they are.

    Holds whatever the dependence between the tests. Raises EvaluationError for a value outside [0, 1].
    """
    for name, p_value in p_values.items():
        if not 0 <= p_value <= 1:  # NaN too
            raise EvaluationError(f"The p-value of {name!r} is {p_value}; expected 0 to 1.")
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, (name, p_value) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        highest = max(highest, min(1.0, p_value * (len(p_values) - rank)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def compare(system: Scores, baseline: Scores, *, seed: int = 0) -> Comparison:
    """Both means and their difference with intervals, and the paired randomisation test."""
    return Comparison(
        bootstrap_mean(system, seed=seed),
        bootstrap_mean(baseline, seed=seed),
        bootstrap_difference(system, baseline, seed=seed),
        permutation_test(system, baseline, seed=seed),
    )


def _resampled_means(values: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    n = len(values)
    return np.concatenate([values[rng.integers(0, n, size=(size, n))].mean(axis=1) for size in _blocks(resamples, n)])


def _blocks(resamples: int, n: int) -> list[int]:
    size = max(1, min(resamples, _BLOCK_ELEMENTS // max(1, n)))
    return [min(size, resamples - start) for start in range(0, resamples, size)]


def _check_resamples(resamples: int) -> None:
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; it must be 1 or more.")


def _differences(system: Scores, baseline: Scores) -> NDArray[np.float64]:
    checked_system, checked_baseline = _checked(system, "system"), _checked(baseline, "baseline")
    if len(checked_system) != len(checked_baseline):
        short = min(len(checked_system), len(checked_baseline))
        raise EvaluationError(
            f"The system has {len(checked_system)} scores and the baseline {len(checked_baseline)}; row {short} has no "
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
