"""Decides which of two systems is better by two halves of a test set that must agree, and by human questions.

    for decision in decisions(evaluation.rows, "recall@5"):
        print(decision.first, decision.second, decision.verdict)

One half is made of statements of the documents, the other has the questions that the index asked of its own
communities. Each has faults of its own, and they are unlike, so kraq takes a difference for real if one half shows it
by three standard errors, and the mean of the other agrees. Human questions decide if they can, however few. If they
cannot, and their mean points the other way, nothing is decided.

Both halves are written from the passages, which favors search by words (figures: benchmarks/results/testsets.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Any

from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.rows import ResultRow
from kraq_dspy.eval.statistics import PairedDifference, paired_difference
from kraq_dspy.records import MADE, OWN
from kraq_dspy.settings import EMBEDDED

HUMAN = "human"
HALVES = (MADE, OWN)
SURE = 0.0027
"""p of the paired test at three standard errors: what one half must reach, while the other's mean agrees."""
LEAST_ROWS = 20
"""Rows of a half; fewer are no half, and the run is judged as one set of questions."""
LEAST_HUMAN = 3
"""Human questions that say anything at all."""
USUAL_OVERLAP = 0.8
"""Share of a human question's words that its passages have: the median over data sets is about this."""

ScoresByHalf = Mapping[str, Mapping[str, float]]
"""For each half, and for human questions, a system's scores by question id."""


@dataclass(frozen=True)
class Decision:
    """Which of two systems is better by one metric, and why.

    Attributes:
        first: the name of one system.
        second: the name of the other.
        differences: the mean of `first` minus the mean of `second`, paired, by half ("made", "own", "human"), in the
            unit of the metric.
        verdict: 1 if `first` is better, -1 if `second` is, 0 if that is open.
        reason: which questions decided, or why none did.
    """

    first: str
    second: str
    differences: Mapping[str, PairedDifference]
    verdict: int
    reason: str

    @property
    def text(self) -> str:
        """The decision in words."""
        better = {1: f"{self.first} is better", -1: f"{self.second} is better"}.get(self.verdict)
        return f"{better}, by {self.reason}" if better else self.reason

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON values."""
        differences = {
            half: {name: getattr(each.interval, name) for name in ("estimate", "low", "high", "n")}
            for half, each in self.differences.items()
        }
        return {
            "first": self.first,
            "second": self.second,
            "differences": differences,
            "verdict": self.verdict,
            "text": self.text,
        }


def decide(first: str, second: str, scores: ScoresByHalf, other: ScoresByHalf, *, seed: int = 0) -> Decision:
    """Decide which of two systems is better, by the scores of both on the same questions.

    Args:
        first: the name of one system.
        second: the name of the other.
        scores: the scores of `first`, by half ("made", "own", "human") and question id.
        other: the scores of `second`, in the same form.
        seed: the random seed of the tests.

    Returns:
        The decision, with its differences and its reason.

    If the interval of the human questions excludes 0 (`paired_difference`), the human questions decide. Otherwise one
    half must be sure (p at most 0.0027), the mean of the other half must agree, and the mean of the human questions
    must not lie on the other side. Questions without a score of one system are left out.

    >>> halves = {half: {f"q{n}": 1.0 for n in range(30)} for half in ("made", "own")}
    >>> worse = {half: {f"q{n}": float(n % 2) for n in range(30)} for half in ("made", "own")}
    >>> decide("dense", "bm25", halves, worse).text
    'dense is better, by both halves'
    """
    differences = {}
    for half in (*HALVES, HUMAN):
        shared = sorted(scores.get(half, {}).keys() & other.get(half, {}).keys())
        if len(shared) >= (LEAST_HUMAN if half == HUMAN else 1):
            values = [[side[half][id] for id in shared] for side in (scores, other)]
            differences[half] = paired_difference(*values, seed=seed)
    verdict, reason = _verdict(differences)
    return Decision(first, second, differences, verdict, reason)


def _verdict(differences: Mapping[str, PairedDifference]) -> tuple[int, str]:
    signs = {half: _direction(each) for half, each in differences.items()}
    made, own = (signs.get(half, 0) for half in HALVES)
    human = differences.get(HUMAN)
    if human is not None and human.is_decided:
        return signs[HUMAN], "human questions"
    if min((differences[half].test.p_value for half in HALVES if half in differences), default=1) > SURE:
        return 0, "open: neither half is sure"
    if made * own <= 0:
        return 0, "open: one half is sure, and the other does not agree"
    if signs.get(HUMAN) == -made:
        return 0, "open: both halves agree, and the mean of human questions is against"
    return made, "both halves"


def _direction(difference: PairedDifference) -> int:
    estimate = difference.interval.estimate
    return (estimate > 0) - (estimate < 0)


def scores_by_half(rows: Iterable[ResultRow], metric: str) -> dict[str, dict[str, float]]:
    """The scores of one system by half and question id; a question that failed counts as 0, and one that the metric is
    not defined for does not count."""
    scores: dict[str, dict[str, float]] = {}
    for row in sorted(rows, key=lambda each: each.question_id):
        half = row.extra.get("half")
        if half and metric not in row.extra.get("undefined", ()):
            scores.setdefault(str(half), {})[row.question_id] = row.metrics.get(metric, 0.0)
    return scores


def has_halves(scores: ScoresByHalf) -> bool:
    """Whether there are two halves to decide by, of `LEAST_ROWS` each."""
    return all(len(scores.get(half, ())) >= LEAST_ROWS for half in HALVES)


def mean_of_halves(scores: ScoresByHalf) -> float:
    """The mean of the means of the halves and of human questions: no half counts for its number of rows."""
    return fmean(fmean(of_half.values()) for of_half in scores.values())


def decisions(rows: Sequence[ResultRow], metric: str, *, seed: int = 0) -> list[Decision]:
    """The decision on each pair of systems, in the order of the rows; empty for a run without two halves."""
    by_system: dict[str, list[ResultRow]] = {}
    for row in rows:
        by_system.setdefault(row.system, []).append(row)
    scores = {system: scores_by_half(own, metric) for system, own in by_system.items()}
    usable = [system for system, own in scores.items() if has_halves(own)]
    return [
        decide(first, second, scores[first], scores[second], seed=seed) for first, second in combinations(usable, 2)
    ]


def as_human(examples: Sequence[Example]) -> list[Example]:
    """Human questions as rows of the half "human", with ids that no row of the test set has. Raises EvaluationError
    for too few of them."""
    if len(examples) < LEAST_HUMAN:
        raise EvaluationError(
            f"There are {counted(len(examples), 'human question')} to score by; expected {LEAST_HUMAN} at least, "
            "and better ten."
        )
    return [
        Example(
            f"human {each.id}", each.question, each.answers, each.supporting_ids, each.type, each.answer_items,
            each.context_ids, {**each.metadata, "half": HUMAN},
        )
        for each in examples
    ]  # fmt: skip


def require_halves(examples: Sequence[Example]) -> None:
    """Raise EvaluationError unless the test set has two halves of `LEAST_ROWS`: without them, nobody can decide."""
    counts = {half: sum(each.metadata.get("half") == half for each in examples) for half in HALVES}
    if min(counts.values()) < LEAST_ROWS:
        raise EvaluationError(
            f"The questions have {counted(counts[MADE], 'made row')} and {counted(counts[OWN], 'row')} of the index's "
            f"own; expected {LEAST_ROWS} of each to decide with human questions. Make a test set (kraq testset make "
            "INDEX), or evaluate human questions alone."
        )


def about_made(examples: Sequence[Example]) -> dict[str, Any]:
    """What a run keeps of the made half for `bias_note`; nothing without such rows."""
    made = [each.metadata for each in examples if each.metadata.get("half") == MADE]
    shares = [float(each["overlap"]) for each in made if "overlap" in each]
    if not shares:
        return {}
    models = sorted({str(each.get("model", "")) for each in made})
    return {"made_half": {"rows": len(made), "model": ", ".join(models), "overlap": median(shares)}}


def bias_note(made_half: Mapping[str, Any]) -> str:
    """What a reader must know of the made half if no language model wrote it; "" if one did.

    >>> bias_note({"rows": 80, "model": "embedded", "overlap": 0.97})[:49]
    'No language model wrote the made half: 0.97 of it'
    """
    if made_half.get("model") != EMBEDDED:
        return ""
    return (
        f"No language model wrote the made half: {made_half['overlap']:.2f} of its questions' words stand in their "
        f"passages (median; of human questions, about {USUAL_OVERLAP:g}), which favors search by words."
    )
