"""Tells a difference from chance: intervals and paired tests over per-question scores.

Scores come as arrays over the same questions in the same order. All randomness is a seed. Empty,
unequal, NaN or infinite input raises EvaluationError that names the row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import EvaluationError, counted

Scores = Sequence[float] | NDArray[np.float64]
RESAMPLES = 10_000
"""Bootstrap samples, and random choices of signs."""
SIGNIFICANT = 0.05
"""The level of every judgement: a difference is told from chance if its p-value is below it, which is the same as that
its interval (of 95 %) excludes 0 (`paired_difference`)."""
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

    def shown(self, *, signed: bool = False) -> str:
        """The estimate and the ends, as tables show them.

        >>> Interval(0.5, 0.25, 0.75, 0.95, 8, 1000, 0).shown(signed=True)
        '+0.500 [+0.250, +0.750]'
        """
        estimate, low, high = (number(each, signed=signed) for each in (self.estimate, self.low, self.high))
        return f"{estimate} [{low}, {high}]"


def number(value: float, *, signed: bool = False) -> str:
    """Three decimals for shares, one for counts."""
    digits = 3 if abs(value) < 10 else 1
    value = round(value, digits) + 0.0  # no negative zero
    return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"


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
    """Estimate a mean with its bias-corrected and accelerated (BCa) bootstrap interval (Efron, 1987).

    Args:
        scores: a score for each question, `[n_questions]`.
        confidence: the level of the interval, in (0, 1).
        resamples: how many samples to draw.
        seed: the random seed; the same seed gives the same interval.

    Returns:
        The mean and the ends of the interval, in the unit of the scores.

    Scores of questions are often skewed. For skewed scores, BCa intervals are more accurate than percentile
    intervals. If all scores are equal and in [0, 1], the function returns Wilson's interval (1927). If all scores are
    equal and outside of [0, 1], the interval has width 0.

    >>> bootstrap_mean([1, 1, 0, 1, 1, 1, 0, 1]).estimate
    0.75
    >>> round(bootstrap_mean([1] * 60).low, 3)
    0.94
    """
    values = _checked(scores)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must be between 0 and 1.")

    estimate = float(values.mean())
    if _are_equal(values) and 0 <= estimate <= 1:
        low, high = _wilson_ends(estimate, len(values), confidence)
        return Interval(estimate, low, high, confidence, len(values), 0, seed, "Wilson score")
    return _bootstrapped(values, confidence, resamples, seed)


def _bootstrapped(values: NDArray[np.float64], confidence: float, resamples: int, seed: int) -> Interval:
    estimate = float(values.mean())
    low = high = estimate
    if not _are_equal(values):
        rng = np.random.default_rng(seed)
        means = np.concatenate([
            values[rng.integers(0, len(values), (size, len(values)))].mean(axis=1)
            for size in _sizes_of_blocks(resamples, len(values))
        ])  # fmt: skip
        low, high = _bca_ends(values, means, confidence)
    return Interval(estimate, float(low), float(high), confidence, len(values), resamples, seed)


def _are_equal(values: NDArray[np.float64]) -> bool:
    """Whether they differ by no more than rounding."""
    return bool(np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())))


def _wilson_ends(share: float, n: int, confidence: float) -> tuple[float, float]:
    """Wilson's score interval (1927) of a share of `n`."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, min(share, float(middle - half))), min(1.0, max(share, float(middle + half)))


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


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """What a system has more than another over the same questions: the interval, and the test that it agrees with."""

    interval: Interval
    test: Test

    @property
    def is_decided(self) -> bool:
        """Whether chance alone does not explain the difference: the interval excludes 0, and p is below .05."""
        return self.test.p_value < SIGNIFICANT


def paired_difference(
    system: Scores, baseline: Scores, *, resamples: int = RESAMPLES, seed: int = 0
) -> PairedDifference:
    """mean(system) - mean(baseline) with an interval of 95 % that excludes 0 exactly if the paired test is significant.

    The test is `permutation_test`. The interval holds the differences that this test does not reject: the means of
    random halves of the questions mark its ends (Hartigan, 1969). That is narrow if few questions differ, so each end
    is at least as far out as in the adjusted Wald interval, which adds one win and one loss (Bonett and Price, 2012),
    unless this alone would put 0 inside. Below six questions that differ, no difference is significant.

    >>> losses = paired_difference([0.0] * 3 + [1.0] * 57, [1.0] * 60)
    >>> losses.test.p_value, losses.is_decided, losses.interval.high >= 0
    (0.25, False, True)
    >>> [round(end, 2) for end in (paired_difference([1] * 9, [1] * 9).interval.low, losses.interval.low)]
    [-0.25, -0.12]
    """
    differences = _differences(system, baseline)
    test = permutation_test(system, baseline, resamples=resamples, seed=seed)
    low, high = _ends_of_test(differences, resamples, seed)

    largest = float(np.abs(differences).max()) or 1.0
    n = len(differences) + 2  # with a win and a loss
    mean = differences.sum() / n
    variance = ((differences**2).sum() + 2 * largest**2) / n - mean**2
    half = NormalDist().inv_cdf(1 - SIGNIFICANT / 2) * np.sqrt(variance / n)
    if low <= 0 or mean - half > 0:
        low = min(low, float(mean - half))
    if high >= 0 or mean + half < 0:
        high = max(high, float(mean + half))

    reach = _largest_difference(system, baseline)
    estimate = float(differences.mean())
    interval = Interval(
        estimate, max(low, -reach), min(high, reach), 1 - SIGNIFICANT, len(differences), resamples, seed,
        "inverted paired randomisation, at least adjusted Wald",
    )  # fmt: skip
    return PairedDifference(interval, test)


def _ends_of_test(differences: NDArray[np.float64], resamples: int, seed: int) -> tuple[float, float]:
    """The least and the largest true difference that the paired randomisation test does not reject.

    A choice of swaps is at least as far from `delta` as the scores are if `delta` lies between the mean over the
    swapped questions and the mean over the others. So p is the share of choices whose two means enclose `delta`.
    """
    changed = differences[differences != 0]
    n_equal = len(differences) - len(changed)
    rng = np.random.default_rng(seed)
    total = differences.sum()

    blocks = [(swaps @ changed, swaps.sum(axis=1, dtype=np.int64)) for swaps in _swaps(len(changed), resamples, rng)]
    swapped = np.concatenate([sums for sums, _ in blocks]).round(9)
    n_swapped = np.concatenate([counts for _, counts in blocks])
    if n_equal:
        repeats = -(-resamples // len(swapped))
        swapped, n_swapped = np.tile(swapped, repeats), np.tile(n_swapped, repeats)
    if n_equal:
        n_swapped = n_swapped + rng.binomial(n_equal, 0.5, len(n_swapped))
    n_others = len(differences) - n_swapped
    others = (total - swapped).round(9)

    is_split = (n_swapped > 0) & (n_others > 0)
    mean_of_swapped = swapped / np.maximum(n_swapped, 1)
    mean_of_others = others / np.maximum(n_others, 1)
    lower = np.where(is_split, np.minimum(mean_of_swapped, mean_of_others), -np.inf)
    upper = np.where(is_split, np.maximum(mean_of_swapped, mean_of_others), np.inf)

    place = int(np.ceil(SIGNIFICANT * len(lower) - 1e-9)) - 1
    return float(np.sort(lower)[place]), float(np.sort(upper)[-1 - place])


def _largest_difference(system: Scores, baseline: Scores) -> float:
    """How far two means can lie apart: 1 for shares, else as far as the scores reach."""
    both = np.concatenate([_checked(system), _checked(baseline)])
    is_share = both.min() >= 0 and both.max() <= 1
    return 1.0 if is_share else float(np.ptp(both))


def bootstrap_difference(system: Scores, baseline: Scores, *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """Estimate the difference of two means with its BCa bootstrap interval over questions.

    Args:
        system: a score for each question, `[n_questions]`.
        baseline: the other system's scores on the same questions, `[n_questions]`.
        resamples: how many samples to draw.
        seed: the random seed.

    Returns:
        mean(system) - mean(baseline), and the ends of the 95 % interval of this difference.

    To decide whether a difference is significant, use `paired_difference`: its interval agrees with the test.

    >>> bootstrap_difference([1, 1, 0, 1], [0, 1, 0, 0]).estimate
    0.5
    """
    return _bootstrapped(_differences(system, baseline), 0.95, resamples, seed)


def permutation_test(system: Scores, baseline: Scores, *, resamples: int = RESAMPLES, seed: int = 0) -> Test:
    """Run a two-sided paired randomization test of the mean difference (Noreen, 1989; Smucker et al., 2007).

    Args:
        system: a score for each question, `[n_questions]`.
        baseline: the other system's scores on the same questions, `[n_questions]`.
        resamples: how many random swaps to try.
        seed: the random seed.

    Returns:
        The test, with its p in (0, 1].

    The test swaps the two scores of some questions, and computes the mean difference again. If there are at most
    `resamples` ways to swap, the test tries all of them and p is exact. Otherwise the test draws `resamples` ways at
    random. Then p is (extreme + 1) / (resamples + 1), where `extreme` counts the draws with at least the observed
    difference (Phipson and Smyth, 2010).

    >>> permutation_test([1, 1, 0, 1], [0, 1, 0, 0]).p_value
    0.5
    """
    differences = _differences(system, baseline)
    changed = differences[differences != 0]
    as_far = [_are_as_far(swaps, changed) for swaps in _swaps(len(changed), resamples, np.random.default_rng(seed))]
    method = "paired randomisation, exact"
    if 2 ** min(len(changed), 63) > resamples:
        method = f"paired randomisation, {resamples} resamples, seed {seed}"
    return Test(float(differences.mean()), float(np.concatenate(as_far).mean()), len(differences), method)


def _swaps(n: int, resamples: int, rng: np.random.Generator) -> Iterator[NDArray[np.integer[Any]]]:
    """Which of `n` questions are swapped, a choice a row, in blocks: every choice if there are at most `resamples`,
    else the one without swaps and so many random ones."""
    if 2 ** min(n, 63) <= resamples:
        yield np.arange(2**n)[:, None] >> np.arange(n) & 1
        return
    yield np.zeros((1, n), np.int8)
    for size in _sizes_of_blocks(resamples, n):
        yield rng.integers(0, 2, (size, n), np.int8)


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
    """Compare two systems on the same questions.

    Args:
        system: a score for each question, `[n_questions]`.
        baseline: the other system's scores on the same questions, `[n_questions]`.
        seed: the random seed of intervals and test.

    Returns:
        Both means, the difference, a 95 % interval of each, and the paired randomization test.

    >>> compare([1, 1, 0, 1], [0, 1, 0, 0]).difference.estimate
    0.5
    """
    paired = paired_difference(system, baseline, seed=seed)
    return Comparison(
        bootstrap_mean(system, seed=seed),
        bootstrap_mean(baseline, seed=seed),
        paired.interval,
        paired.test,
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
