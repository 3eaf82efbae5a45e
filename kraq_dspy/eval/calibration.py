"""Joins a few of people's questions with an exam: each mends what the other lacks.

    joint = calibrated(scores_by_people, scores_by_exam)
    joint.pair("hybrid", "dense")  # the difference, its interval, and whether it is decided
    print(joint.agreement)

People's questions are right and too few; an exam has many rows and a bias that differs from corpus to corpus. The bias
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

PRIOR_QUESTIONS = 10
"""Questions that the exam's covariance of systems counts for, beside that of people's questions."""
BIASES = np.linspace(0.1, 0.5, 9)
"""Standard deviations of the exam's bias that are weighed. The least is no 0, since a few questions cannot show that an
exam has no bias; from .05 on, intervals covered .78 to .84 on one of four corpora."""
SCALES = np.linspace(0, 1.25, 11)
"""How many times the exam's differences people's may be, for the gate: 0 is an exam that says nothing."""
LEAST_SYSTEMS = 3
"""Fewer make no contrast to learn the bias from: then people's questions decide alone."""
LEAST_QUESTIONS = 3
"""Fewer of people's questions have no spread to speak of."""
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

    `is_open` says whether the exam passed the gate; else people's questions decide alone. `weight` is the share of the
    information that came from the exam, in [0, 1]. `bias` is the standard deviation of the exam's bias, in the metric's
    unit; None if the gate is shut. `correlation` is that of the systems' means by people's questions and by the exam,
    None if one of them tells no system from another.
    """

    systems: tuple[str, ...]
    means: Mapping[str, float]
    pairs: Mapping[tuple[str, str], PairVerdict]
    n_people: int
    n_exam: int
    is_open: bool
    weight: float
    bias: float | None
    correlation: float | None

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
            "means": dict(self.means), "pairs": pairs, "n_people": self.n_people, "n_exam": self.n_exam,
            "weight": self.weight, "bias": self.bias, "correlation": self.correlation,
            "agreement": self.agreement, "outlook": self.outlook,
        }  # fmt: skip

    @property
    def undecided(self) -> tuple[PairVerdict, ...]:
        """The pairs whose interval reaches 0."""
        return tuple(pair for pair in self.pairs.values() if not pair.is_decided)

    @property
    def agreement(self) -> str:
        """How far the exam agrees with people's questions, and what weight it got, in sentences."""
        people = f"{self.n_people} of people's questions"
        if len(self.systems) < LEAST_SYSTEMS:
            return f"Fewer than {LEAST_SYSTEMS} systems show no bias of an exam, so {people} decide alone."
        if not self.is_open:
            return (
                f"The exam ({counted(self.n_exam, 'row')}) does not foretell what {people} say, so these decide alone."
            )

        alike = "" if self.correlation is None else f" (correlation of the means {self.correlation:.2f})"
        return (
            f"The exam ({counted(self.n_exam, 'row')}) agrees with {people}{alike}: its differences are off by about "
            f"{self.bias:.2f}, and it has {100 * self.weight:.0f} % of the weight."
        )

    @property
    def outlook(self) -> str:
        """How many pairs are decided, and how many more of people's questions would decide those that are open."""
        n_open = len(self.undecided)
        pairs, are = counted(len(self.pairs), "pair"), "is" if len(self.pairs) == 1 else "are"
        if not n_open:
            return f"All {pairs} of systems are decided." if len(self.pairs) > 1 else "The pair of systems is decided."
        needed = sorted(pair.more_questions for pair in self.undecided if pair.more_questions is not None)
        said = f"{len(self.pairs) - n_open} of {pairs} of systems {are} decided."
        if not needed:
            return f"{said} The others differ too little for questions to decide."
        half = needed[(len(needed) - 1) // 2]
        return (
            f"{said} About {needed[0]} more of people's questions would decide the next, {half} half of those in reach."
        )


def calibrated(people: Mapping[str, Sequence[float]], exam: Mapping[str, Sequence[float]]) -> Calibrated:
    """Join scores by a few of people's questions with scores by an exam, so that both decide together.

    `people` and `exam` map each system to its scores, one for each question in the same order for all systems; the two
    sets of questions differ. Scores are shares, in [0, 1]. Five of people's questions are enough to begin with.

    The model is a random-effects one (DerSimonian and Laird, 1986), over contrasts of systems: the exam's true
    differences are people's with a normal bias, which alike systems share. Its size is averaged over a grid by the
    likelihood (Bayesian model averaging: Hoeting et al., 1999). People's covariance is pooled with the exam's, since
    few questions show it badly. An exam that does not foretell people's scores better than none does is shut out by its
    marginal likelihood, also if its differences have another scale. Prediction-powered inference (Angelopoulos et al.,
    2023) and ARES (Saad-Falcon et al., 2024) join labels and predictions on the same items. Here the items differ, so
    the bias lies between systems.

    With fewer than three systems, nothing shows the bias: people's questions decide alone, by `paired_difference`.
    Saturated scores are not taken for certain: a standard error is at least half a question.

    Raises EvaluationError for systems that only one side has, scores of unequal number, fewer than three of people's
    questions or three rows of the exam, and scores outside [0, 1].

    >>> people = {"dense": [1, 1, 0, 1, 1], "bm25": [0, 1, 0, 1, 0], "hybrid": [1, 1, 0, 1, 0]}
    >>> exam = {"dense": [1, 1, 0, 1] * 25, "bm25": [0, 1, 0, 0] * 25, "hybrid": [1, 1, 0, 0] * 25}
    >>> joint = calibrated(people, exam)
    >>> joint.is_open, joint.pair("dense", "bm25").interval.estimate > 0.3
    (True, True)
    """
    systems, peoples_scores, exam_scores = _checked_scores(people, exam)
    m, n = len(peoples_scores), len(exam_scores)
    contrasts = _contrasts(len(systems))
    y, x = peoples_scores.mean(axis=0), exam_scores.mean(axis=0)
    people_covariance, exam_covariance = _covariance(peoples_scores), _covariance(exam_scores)

    shape = exam_covariance / max(float(np.mean(np.diag(exam_covariance))), 1e-9)
    spread = float(np.mean(np.diag(people_covariance)))
    pooled = ((m - 1) * people_covariance + PRIOR_QUESTIONS * spread * shape) / (m - 1 + PRIOR_QUESTIONS)
    likeness = (np.eye(len(systems)) + shape) / 2

    joint = _Joint(
        y=contrasts @ y,
        x=contrasts @ x,
        people_error=contrasts @ (pooled / m) @ contrasts.T,
        exam_error=contrasts @ (exam_covariance / n) @ contrasts.T,
        bias=contrasts @ likeness @ contrasts.T,
    )
    is_open = len(systems) >= LEAST_SYSTEMS and joint.passes_gate()
    mean, covariance, bias = joint.posterior() if is_open else (joint.y, joint.people_error, None)

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
        half = critical * math.sqrt(variance)
        interval = Interval(
            difference, max(-1.0, difference - half), min(1.0, difference + half), 1 - SIGNIFICANT, m, 0, 0,
            "people's questions with an exam" if is_open else "people's questions alone",
        )  # fmt: skip
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
        n_exam=n,
        is_open=is_open,
        weight=min(1.0, max(0.0, weight)),
        bias=bias,
        correlation=_correlation(joint.y, joint.x),
    )


def calibrated_rows(people: Sequence[ResultRow], exam: Sequence[ResultRow], metric: str) -> Calibrated:
    """`calibrated` over the rows of two evaluations of the same systems; a question that failed counts as 0.

    Questions that the metric is not defined for are left out. Raises EvaluationError as `calibrated` does.
    """
    return calibrated(_scores_by_system(people, metric), _scores_by_system(exam, metric))


def _scores_by_system(rows: Sequence[ResultRow], metric: str) -> dict[str, list[float]]:
    """The scores of each system over the questions that every system was asked, in the order of their ids."""
    by_system: dict[str, dict[str, float]] = {}
    for row in rows:
        if metric not in row.extra.get("undefined", ()):
            by_system.setdefault(row.system, {})[row.question_id] = row.metrics.get(metric, 0.0)
    shared = sorted(set.intersection(*map(set, by_system.values()))) if by_system else []
    return {system: [scores[id] for id in shared] for system, scores in by_system.items()}


@dataclass(frozen=True)
class _Joint:
    """What is known of the contrasts of systems: means by people `y` and by the exam `x`, `[systems - 1]`; the
    covariance of each, and of the exam's bias at size 1, `[systems - 1, systems - 1]`."""

    y: Array
    x: Array
    people_error: Array
    exam_error: Array
    bias: Array

    def passes_gate(self) -> bool:
        """Whether the exam, at the best of scales and biases on average, foretells people's means better than nothing.

        Nothing is the same model at scale 0: all systems alike, but for the bias.
        """
        by_scale = []
        for scale in SCALES:
            covariances = self.people_error + scale**2 * self.exam_error + _squared(BIASES) * self.bias
            by_scale.append(_log_mean(_log_likelihoods(self.y - scale * self.x, covariances)))
        return _log_mean(np.array(by_scale)) > by_scale[0]

    def posterior(self) -> tuple[Array, Array, float]:
        """Mean and covariance of people's true contrasts, mixed over the sizes of the bias, and its mean size."""
        prior = self.exam_error + _squared(BIASES) * self.bias
        logs = _log_likelihoods(self.y - self.x, self.people_error + prior)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()

        gains = prior @ np.linalg.pinv(self.people_error + prior)
        means = self.x + np.einsum("bij,j->bi", gains, self.y - self.x)
        within = np.einsum("b,bij->ij", weights, prior - gains @ prior)
        mean = weights @ means
        apart = means - mean
        covariance = within + np.einsum("b,bi,bj->ij", weights, apart, apart)
        return mean, (covariance + covariance.T) / 2, float(weights @ BIASES)


def _checked_scores(
    people: Mapping[str, Sequence[float]], exam: Mapping[str, Sequence[float]]
) -> tuple[tuple[str, ...], Array, Array]:
    """The systems, and both sides' scores, float64 `[questions, systems]`."""
    systems = tuple(people)
    if set(systems) != set(exam):
        apart = sorted(set(systems) ^ set(exam))
        raise EvaluationError(f"Only one side has scores of {', '.join(map(repr, apart))}; expected the same systems.")
    if len(systems) < 2:
        raise EvaluationError(f"There are scores of {counted(len(systems), 'system')}; expected two at least.")

    sides = []
    for name, scores in (("people's questions", people), ("the exam", exam)):
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
        sides.append(values)
    return systems, sides[0], sides[1]


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


def _squared(biases: Array) -> Array:
    return np.asarray((biases**2)[:, None, None], np.float64)


def _log_likelihoods(residual: Array, covariances: Array) -> Array:
    """Of a normal with mean 0, for each of the covariances `[b, i, i]`; constants are left out."""
    _, logs = np.linalg.slogdet(covariances)
    solved = np.linalg.solve(covariances, np.broadcast_to(residual, (len(covariances), len(residual)))[..., None])
    likelihoods: Array = -0.5 * (logs + solved[..., 0] @ residual)
    return likelihoods


def _log_mean(logs: Array) -> float:
    """The logarithm of the mean of what these are the logarithms of."""
    highest = float(logs.max())
    return highest + math.log(float(np.exp(logs - highest).mean()))


def _variance_of_pair(covariance: Array, first: int, second: int) -> float:
    return float(covariance[first, first] + covariance[second, second] - 2 * covariance[first, second])


def _correlation(first: Array, second: Array) -> float | None:
    """The correlation of two vectors of contrasts, whose means are 0."""
    lengths = float(np.linalg.norm(first)), float(np.linalg.norm(second))
    if min(lengths) < 1e-9 or len(first) < LEAST_SYSTEMS - 1:
        return None
    return float(first @ second) / (lengths[0] * lengths[1])


def _more_questions(difference: float, critical: float, variance: float, variance_alone: float, m: int) -> int | None:
    """How many more of people's questions would bring the interval's end to 0, if the difference stayed.

    The information of people's questions grows with their number; that of the exam stays.
    """
    if abs(difference) < 1e-9:
        return None
    needed = (critical / abs(difference)) ** 2
    of_exam = max(0.0, 1 / variance - 1 / variance_alone)
    total = math.ceil((needed - of_exam) * variance_alone * m)
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
