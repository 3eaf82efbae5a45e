"""Joins a few human questions with a test set and the index's own questions: each mends what the others lack.

    joint = calibrated(scores_by_people, scores_by_testset)
    joint.pair("hybrid", "dense")  # the difference, its interval, and whether it is decided
    print(joint.agreement)

Human questions are right and too few; a test set has many rows and a bias that differs from corpus to corpus. The bias
lies between systems, and is estimated from how far the two differ beyond both errors.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.eval.rows import ResultRow
from kraq_dspy.eval.statistics import SIGNIFICANT, Interval, paired_difference

Array = NDArray[np.float64]

PRIOR_QUESTIONS = 20
"""Questions that the test set's covariance of systems counts for, beside that of human questions."""
BIASES = np.linspace(0.1, 0.5, 9)
"""Standard deviations of the test set's bias that are weighed. The least is no 0, since a few questions cannot show
that a test set has no bias. From .05 on, intervals covered .78 to .84 on one of four corpora; where the least was a
share of how far systems differ by the test set, .86 to .93 on one of four others."""
SCALE_ERROR = 0.25
"""Standard deviation of the factor between the test set's differences and people's, around 1. With 0, intervals covered
.89 to .93 on a corpus where the test set's differences are three times people's."""
MIXES = ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0))
"""Shares of the test set and of the index's own questions that are weighed against each other."""
SCALES = np.linspace(0, 1.25, 11)
"""How many times the test set's differences people's may be, for the gate: 0 is a test set that says nothing."""
LEAST_SYSTEMS = 3
"""Fewer make no contrast to learn the bias from: then human questions decide alone."""
LEAST_QUESTIONS = 3
"""Fewer of human questions have no spread to speak of."""
MOST_FORESEEN = 1000
"""More questions than anybody writes: a pair that needs more is called open."""


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What `first` has more than `second`, in the metric's unit. `more_questions` of people's would decide the pair if
    the difference stays what it is: 0 if it is decided, None if more than a thousand would be needed."""

    first: str
    second: str
    interval: Interval
    more_questions: int | None

    @property
    def is_decided(self) -> bool:
        """Whether the interval excludes 0."""
        return self.interval.low > 0 or self.interval.high < 0


@dataclass(frozen=True)
class Calibrated:
    """The joint result for some systems. `means` are joint means over people's kind of questions.

    `is_open` says whether the test set passed the gate; else human questions decide alone. `weight` is the share of the
    information that came from the test set and the index's own questions, in [0, 1], and `own_share` what of it the own
    questions had. `bias` is the standard deviation of the bias, in the metric's unit; None if the gate is shut.
    `correlation` is that of the systems' means by human questions and by the others, None if one of them tells no
    system from another.
    """

    systems: tuple[str, ...]
    means: Mapping[str, float]
    pairs: Mapping[tuple[str, str], PairVerdict]
    n_people: int
    n_testset: int
    is_open: bool
    weight: float
    bias: float | None
    correlation: float | None
    n_own: int = 0
    own_share: float = 0.0

    def pair(self, first: str, second: str) -> PairVerdict:
        """The verdict on `first` - `second`. Raises EvaluationError for a system that was not scored."""
        if (first, second) in self.pairs:
            return self.pairs[first, second]
        if (second, first) not in self.pairs:
            known = ", ".join(self.systems)
            raise EvaluationError(f"There is no pair of {first!r} and {second!r}; the systems are: {known}.")
        return _reversed(self.pairs[second, first])

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON values, with the sentences."""
        pairs = [dataclasses.asdict(pair) | {"is_decided": pair.is_decided} for pair in self.pairs.values()]
        return {
            "means": dict(self.means), "pairs": pairs, "n_people": self.n_people, "n_testset": self.n_testset,
            "n_own": self.n_own, "weight": self.weight, "own_share": self.own_share, "bias": self.bias,
            "correlation": self.correlation,
            "agreement": self.agreement, "outlook": self.outlook,
        }  # fmt: skip

    @property
    def undecided(self) -> tuple[PairVerdict, ...]:
        """The pairs whose interval reaches 0."""
        return tuple(pair for pair in self.pairs.values() if not pair.is_decided)

    @property
    def agreement(self) -> str:
        """How far the test set agrees with human questions, and what weight it got, in sentences."""
        people = f"{self.n_people} human questions"
        if len(self.systems) < LEAST_SYSTEMS:
            return f"Fewer than {LEAST_SYSTEMS} systems show no bias of a test set, so {people} decide alone."
        others = f"The test set ({counted(self.n_testset, 'row')})"
        if not self.n_own:
            verbs = ("does", "agrees", "its", "it has")
        else:
            others += f" and the index's own questions ({self.n_own})"
            verbs = ("do", "agree", "their", "they have")
        does, agrees, its, it_has = verbs
        if not self.is_open:
            return f"{others} {does} not foretell what {people} say, so these decide alone."

        alike = "" if self.correlation is None else f" (correlation of the means {self.correlation:.2f})"
        own = f", {100 * self.own_share:.0f} % of that the own questions" if self.n_own else ""
        return (
            f"{others} {agrees} with {people}{alike}: {its} differences are off by about {self.bias:.2f}, and {it_has} "
            f"{100 * self.weight:.0f} % of the weight{own}."
        )

    @property
    def outlook(self) -> str:
        """How many pairs are decided, and how many more of human questions would decide those that are open."""
        n_open = len(self.undecided)
        pairs, are = counted(len(self.pairs), "pair"), "is" if len(self.pairs) == 1 else "are"
        if not n_open:
            return f"All {pairs} of systems are decided." if len(self.pairs) > 1 else "The pair of systems is decided."
        needed = sorted(pair.more_questions for pair in self.undecided if pair.more_questions is not None)
        said = f"{len(self.pairs) - n_open} of {pairs} of systems {are} decided."
        if not needed:
            return f"{said} The others differ too little for questions to decide."
        half = needed[(len(needed) - 1) // 2]
        return f"{said} About {needed[0]} more of human questions would decide the next, {half} half of those in reach."


def calibrated(
    people: Mapping[str, Sequence[float]],
    testset: Mapping[str, Sequence[float]],
    own: Mapping[str, Sequence[float]] | None = None,
) -> Calibrated:
    """Join scores by a few human questions with scores by a test set, so that both decide together.

    `people` and `testset` map each system to its scores, one for each question in the same order for all systems; the
    sets of questions differ. `own` are scores by a second test set, such as the questions that the index asked of its
    own communities. Scores are shares, in [0, 1]. Five human questions are enough to begin with.

    The model is a random-effects one (DerSimonian and Laird, 1986), over contrasts of systems: the test set's true
    differences are people's with a normal bias, which alike systems share, and on a scale that may differ. The size of
    the bias, and the shares of test set and own questions, are averaged over a grid by the likelihood (Bayesian model
    averaging: Hoeting et al., 1999). People's covariance is pooled with the test set's, since few questions show it
    badly. What does not foretell people's scores better than nothing does is shut out by its marginal likelihood, also
    if its differences have another scale. Prediction-powered inference (Angelopoulos et al., 2023) and ARES
    (Saad-Falcon et al., 2024) join labels and predictions on the same items. Here the items differ, so the bias lies
    between systems.

    With fewer than three systems, nothing shows the bias: human questions decide alone, by `paired_difference`.
    Saturated scores are not taken for certain: a standard error is at least half a question.

    Raises EvaluationError for systems that only one side has, scores of unequal number, fewer than three of people's
    questions or three rows of the test set, and scores outside [0, 1].

    >>> people = {"dense": [1, 1, 0, 1, 1], "bm25": [0, 1, 0, 1, 0], "hybrid": [1, 1, 0, 1, 0]}
    >>> testset = {"dense": [1, 1, 0, 1] * 25, "bm25": [0, 1, 0, 0] * 25, "hybrid": [1, 1, 0, 0] * 25}
    >>> joint = calibrated(people, testset)
    >>> joint.is_open, joint.pair("dense", "bm25").interval.estimate > 0.3
    (True, True)
    """
    sides = {"human questions": people, "the test set": testset}
    systems, (peoples_scores, *testsets) = _checked_scores(
        sides if own is None else {**sides, "the own questions": own}
    )
    m, n = len(peoples_scores), sum(map(len, testsets))
    contrasts = _contrasts(len(systems))
    y = peoples_scores.mean(axis=0)

    shape = np.mean([_shape(scores) for scores in testsets], axis=0)
    by_people, by_testsets = contrasts @ _covariance(peoples_scores) @ contrasts.T, contrasts @ shape @ contrasts.T
    pooled = _pooled(by_people, by_testsets, m)
    likeness = (np.eye(len(systems)) + shape) / 2

    joint = _Joint(
        y=contrasts @ y,
        people_error=pooled / m,
        bias=contrasts @ likeness @ contrasts.T,
        mixes=_mixed(testsets, contrasts),
    )
    is_open = len(systems) >= LEAST_SYSTEMS and joint.passes_gate()
    mean, covariance, bias, shares = joint.posterior() if is_open else (joint.y, joint.people_error, None, None)

    level = float(y.mean())
    effects = contrasts.T @ mean
    total = contrasts.T @ covariance @ contrasts
    alone = contrasts.T @ joint.people_error @ contrasts
    critical = _t_quantile(1 - SIGNIFICANT / 2, m - 1 + PRIOR_QUESTIONS)

    pairs = {}
    variances, variances_alone = [], []
    for first, second in combinations(range(len(systems)), 2):
        variance, variance_alone = (_variance_of_pair(each, first, second) for each in (total, alone))
        floor = 0.25 / m**2
        variance = max(variance, 0.25 / (m + n) ** 2 if is_open else floor)
        variances.append(variance)
        variances_alone.append(max(variance_alone, floor))

        difference = float(effects[first] - effects[second])
        interval = _interval_around(difference, critical * math.sqrt(variance), m, is_open=is_open)
        if len(systems) < LEAST_SYSTEMS:
            interval = paired_difference(peoples_scores[:, first], peoples_scores[:, second]).interval
        is_decided = interval.low > 0 or interval.high < 0
        more = 0 if is_decided else _more_questions(difference, critical, variance, variances_alone[-1], m)
        pairs[systems[first], systems[second]] = PairVerdict(systems[first], systems[second], interval, more)

    weight = 1 - float(np.mean(variances)) / float(np.mean(variances_alone)) if is_open else 0.0
    return Calibrated(
        systems=systems,
        means={system: level + float(effect) for system, effect in zip(systems, effects, strict=True)},
        pairs=pairs,
        n_people=m,
        n_testset=len(testsets[0]),
        is_open=is_open,
        weight=min(1.0, max(0.0, weight)),
        bias=bias,
        correlation=_correlation(joint.y, joint.likeliest(shares).x),
        n_own=len(testsets[1]) if len(testsets) > 1 else 0,
        own_share=_own_share(shares),
    )


def calibrated_rows(
    people: Sequence[ResultRow], testset: Sequence[ResultRow], metric: str, own: Sequence[ResultRow] = ()
) -> Calibrated:
    """`calibrated` over the rows of evaluations of the same systems; a question that failed counts as 0.

    Questions that the metric is not defined for are left out. Raises EvaluationError as `calibrated` does.
    """
    of_own = _scores_by_system(own, metric) if own else None
    return calibrated(_scores_by_system(people, metric), _scores_by_system(testset, metric), of_own)


def _scores_by_system(rows: Sequence[ResultRow], metric: str) -> dict[str, list[float]]:
    """The scores of each system over the questions that every system was asked, in the order of their ids."""
    by_system: dict[str, dict[str, float]] = {}
    for row in rows:
        if metric not in row.extra.get("undefined", ()):
            by_system.setdefault(row.system, {})[row.question_id] = row.metrics.get(metric, 0.0)
    shared = sorted(set.intersection(*map(set, by_system.values()))) if by_system else []
    return {system: [scores[id] for id in shared] for system, scores in by_system.items()}


@dataclass(frozen=True)
class _Mix:
    """What the test set says, or it and the index's own questions in some shares, of the contrasts of systems: means
    `x`, `[systems - 1]`, and their covariance."""

    x: Array
    error: Array


@dataclass(frozen=True)
class _Joint:
    """What is known of the contrasts of systems: means by people `y`, `[systems - 1]`, and their covariance, that of
    the test set's bias at size 1, `[systems - 1, systems - 1]`, and what the test set says."""

    y: Array
    people_error: Array
    bias: Array
    mixes: tuple[_Mix, ...]

    def passes_gate(self) -> bool:
        """Whether the test set, at the best of scales, biases and shares on average, foretells people's means better
        than nothing. Nothing is the same model at scale 0: all systems alike, but for the bias."""
        by_scale = []
        for scale in SCALES:
            by_mix = []
            for mix in self.mixes:
                covariances = self.people_error + scale**2 * mix.error + _squared(BIASES) * self.bias
                by_mix.append(_log_mean(_log_likelihoods(self.y - scale * mix.x, covariances)))
            by_scale.append(_log_mean(np.array(by_mix)))
        return _log_mean(np.array(by_scale)) > by_scale[0]

    def posterior(self) -> tuple[Array, Array, float, Array]:
        """Mean and covariance of people's true contrasts, mixed over shares and sizes of the bias; the mean size of the
        bias; and the weight of each mix."""
        priors = np.concatenate([self._priors(mix) for mix in self.mixes])
        xs = np.concatenate([np.tile(mix.x, (len(BIASES), 1)) for mix in self.mixes])
        sizes = np.tile(BIASES, len(self.mixes))
        logs = _log_likelihoods(self.y - xs, self.people_error + priors)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()

        gains = priors @ np.linalg.pinv(self.people_error + priors)
        means = xs + np.einsum("bij,bj->bi", gains, self.y - xs)
        within = np.einsum("b,bij->ij", weights, priors - gains @ priors)
        mean = weights @ means
        apart = means - mean
        covariance = within + np.einsum("b,bi,bj->ij", weights, apart, apart)
        shares = weights.reshape(len(self.mixes), len(BIASES)).sum(axis=1)
        return mean, (covariance + covariance.T) / 2, float(weights @ sizes), shares

    def likeliest(self, shares: Array | None) -> _Mix:
        """The mix of the most weight; the middle one if nothing was weighed."""
        return self.mixes[len(self.mixes) // 2 if shares is None else int(shares.argmax())]

    def _priors(self, mix: _Mix) -> Array:
        """The covariance of people's true contrasts around what the test set says, for each size of the bias."""
        of_scale = SCALE_ERROR**2 * np.outer(mix.x, mix.x)
        priors: Array = mix.error + of_scale + _squared(BIASES) * self.bias
        return priors


def _mixed(testsets: Sequence[Array], contrasts: Array) -> tuple[_Mix, ...]:
    means = [contrasts @ scores.mean(axis=0) for scores in testsets]
    errors = [contrasts @ (_covariance(scores) / len(scores)) @ contrasts.T for scores in testsets]
    mixes = []
    for shares in MIXES if len(testsets) > 1 else ((1.0,),):
        x = sum((share * mean for share, mean in zip(shares, means, strict=True)), np.zeros(len(contrasts)))
        error = sum((share**2 * each for share, each in zip(shares, errors, strict=True)), np.zeros_like(errors[0]))
        mixes.append(_Mix(x, error))
    return tuple(mixes)


def _checked_scores(sides: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[tuple[str, ...], list[Array]]:
    """The systems, and each side's scores, float64 `[questions, systems]`."""
    first, *others = sides.values()
    systems = tuple(first)
    for other in others:
        if set(systems) != set(other):
            apart = sorted(set(systems) ^ set(other))
            named = ", ".join(map(repr, apart))
            raise EvaluationError(f"Only one side has scores of {named}; expected the same systems.")
    if len(systems) < 2:
        raise EvaluationError(f"There are scores of {counted(len(systems), 'system')}; expected two at least.")
    return systems, [_checked_side(name, scores, systems) for name, scores in sides.items()]


def _checked_side(name: str, scores: Mapping[str, Sequence[float]], systems: Sequence[str]) -> Array:
    lengths = {len(scores[system]) for system in systems}
    if len(lengths) > 1:
        raise EvaluationError(
            f"By {name}, systems have {min(lengths)} to {max(lengths)} scores; expected one for each question."
        )
    if min(lengths) < LEAST_QUESTIONS:
        raise EvaluationError(f"There are {min(lengths)} scores by {name}; expected {LEAST_QUESTIONS} at least.")
    values = np.array([scores[system] for system in systems], np.float64).T
    if not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
        raise EvaluationError(f"Scores by {name} are not all between 0 and 1; expected shares, such as recall@5.")
    return values


def _contrasts(n: int) -> Array:
    """Orthonormal rows that sum to 0, `[n - 1, n]` (Helmert)."""
    rows = np.zeros((n - 1, n))
    for row in range(1, n):
        rows[row - 1, :row] = 1 / math.sqrt(row * (row + 1))
        rows[row - 1, row] = -row / math.sqrt(row * (row + 1))
    return rows


def _covariance(scores: Array) -> Array:
    """The covariance of systems over questions. A mean's standard error is at least half a question, so that saturated
    scores are not taken for certain."""
    covariance = np.atleast_2d(np.cov(scores, rowvar=False))
    least = 0.25 / len(scores)
    joined: Array = covariance + np.diag(np.maximum(least - np.diag(covariance), 0))
    return joined


def _pooled(by_people: Array, by_testsets: Array, m: int) -> Array:
    """People's covariance of contrasts over `m` questions, pooled with the test set's at the same total. A test set
    that tells no system from another lends nothing."""
    total = float(np.trace(by_testsets))
    if total < 1e-9:
        return by_people
    alike = by_testsets * (float(np.trace(by_people)) / total)
    pooled: Array = ((m - 1) * by_people + PRIOR_QUESTIONS * alike) / (m - 1 + PRIOR_QUESTIONS)
    return pooled


def _shape(scores: Array) -> Array:
    """The covariance of systems at a mean variance of 1."""
    covariance = _covariance(scores)
    shape: Array = covariance / max(float(np.mean(np.diag(covariance))), 1e-9)
    return shape


def _squared(biases: Array) -> Array:
    return np.asarray((biases**2)[:, None, None], np.float64)


def _log_likelihoods(residuals: Array, covariances: Array) -> Array:
    """Of normals with mean 0, for each of the covariances `[b, i, i]`, with a residual for each `[b, i]` or one for all
    `[i]`; constants are left out."""
    _, logs = np.linalg.slogdet(covariances)
    each = np.broadcast_to(residuals, covariances.shape[:2])
    solved = np.linalg.solve(covariances, each[..., None])[..., 0]
    likelihoods: Array = -0.5 * (logs + np.einsum("bi,bi->b", solved, each))
    return likelihoods


def _log_mean(logs: Array) -> float:
    """The logarithm of the mean of what these are the logarithms of."""
    highest = float(logs.max())
    return highest + math.log(float(np.exp(logs - highest).mean()))


def _interval_around(difference: float, half: float, m: int, *, is_open: bool) -> Interval:
    """What lies less than `half` from a difference, within the differences that shares can have."""
    source = "human questions with a test set" if is_open else "human questions alone"
    return Interval(
        difference, max(-1.0, difference - half), min(1.0, difference + half), 1 - SIGNIFICANT, m, 0, 0, source
    )


def _own_share(shares: Array | None) -> float:
    """What the index's own questions have of the information, by the weight of each mix; 0 where there are none."""
    if shares is None or len(shares) < len(MIXES):
        return 0.0
    return float(shares @ [mix[1] for mix in MIXES])


def _variance_of_pair(covariance: Array, first: int, second: int) -> float:
    return float(covariance[first, first] + covariance[second, second] - 2 * covariance[first, second])


def _correlation(first: Array, second: Array) -> float | None:
    """The correlation of two vectors of contrasts, whose means are 0."""
    lengths = float(np.linalg.norm(first)), float(np.linalg.norm(second))
    if min(lengths) < 1e-9 or len(first) < LEAST_SYSTEMS - 1:
        return None
    return float(first @ second) / (lengths[0] * lengths[1])


def _more_questions(difference: float, critical: float, variance: float, variance_alone: float, m: int) -> int | None:
    """How many more of human questions would bring the interval's end to 0, if the difference stayed.

    The information of human questions grows with their number; that of the test set stays.
    """
    if abs(difference) < 1e-9:
        return None
    needed = (critical / abs(difference)) ** 2
    of_testset = max(0.0, 1 / variance - 1 / variance_alone)
    total = math.ceil((needed - of_testset) * variance_alone * m)
    more = max(1, total - m)
    return more if more <= MOST_FORESEEN else None


def _t_quantile(share: float, degrees: int) -> float:
    """Student's t by Hill's expansion (1970), right to three digits from five degrees of freedom on."""
    z = NormalDist().inv_cdf(share)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + g1 / degrees + g2 / degrees**2 + g3 / degrees**3


def _reversed(pair: PairVerdict) -> PairVerdict:
    interval = pair.interval
    turned = Interval(
        -interval.estimate, -interval.high, -interval.low, interval.confidence, interval.n, 0, 0, interval.method
    )
    return PairVerdict(pair.second, pair.first, turned, pair.more_questions)
