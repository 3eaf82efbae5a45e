"""Scores one answered question, by the names that a table uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy

from kraq_dspy.errors import ConfigError, EvaluationError, did_you_mean
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.judges import JUDGED, AnsweredQuestion, BinaryJudge, Judge, JudgedMetric, RubricJudge, judge_answers
from kraq_dspy.eval.metrics.for_dspy import METRICS, RANKINGS, Metric, named_metric, similarity_metric
from kraq_dspy.eval.metrics.generation import require_packages
from kraq_dspy.eval.metrics.retrieval import distinct_documents, hit_distance
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.ports import Embedder

SIMILARITY, JUDGE, RUBRIC, RIGHT = "answer_similarity", "judge", "rubric", "right"
DOCUMENTS, DISTANCE = "distinct_documents", "hit_distance"
FACTS = {
    "proxy_used": lambda prediction: float(prediction.proxy_used),
    "looked_up": lambda prediction: _looked_up(prediction),
    "accepted": lambda prediction: float(prediction.valid),
}
"""What only some programs say of themselves: "accepted" is an answer that the program's own validator let pass."""

JUDGES: Mapping[str, type[Judge]] = {JUDGE: BinaryJudge, RUBRIC: RubricJudge, RIGHT: RubricJudge}
""" "right" is a rubric's 4 or 5, or, where an answer was prepared, that it is the question's own (QA search paper)."""

NAMES = (*METRICS, SIMILARITY, *JUDGES, *JUDGED, *RANKINGS, DOCUMENTS, DISTANCE, *FACTS)
OF_RETRIEVAL = frozenset((*RANKINGS, "recall_of_support", "answer_found", DOCUMENTS, DISTANCE))
"""What can be said of a retriever, which answers nothing."""


@dataclass(frozen=True, slots=True)
class Scores:
    """`undefined` are metrics that the question does not have (no gold answer, no known evidence): no failure."""

    values: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    undefined: list[str] = field(default_factory=list)


def require_metric(name: str) -> None:
    """Raises ConfigError for a name that is not known, MissingExtraError where the metric lacks its package."""
    kind, at, _ = name.partition("@")
    if (kind not in NAMES and ":" not in name) or (at and kind not in RANKINGS and ":" not in name):
        raise ConfigError(
            f"There is no metric {name!r}{did_you_mean(kind, NAMES)}; there are: {', '.join(NAMES)}; most rankings "
            "take @k; your own as module:function or file.py:function."
        )
    if kind in METRICS or kind in RANKINGS or ":" in name:
        named_metric(name)
    require_packages(kind)


class RowScorer:
    """Scores predictions by the metrics named. Raises as `require_metric` does. Safe for threads.

    `judge_lm` is asked by metrics for which `is_judged` says so; `embedder` compares meanings, and may be None where no
    metric does. `own` are metrics that have no name here.
    """

    def __init__(
        self,
        names: Sequence[str],
        embedder: Embedder | None,
        judge_lm: dspy.LM | None = None,
        own: Mapping[str, Metric] | None = None,
    ) -> None:
        self._own = dict(own or {})
        for name in names:
            if name not in self._own:
                require_metric(name)
        self.names = tuple(names)
        self._embedder = embedder
        self._judges: dict[str, Judge] = {}
        self._judged: dict[str, JudgedMetric] = {}
        for name in names:
            if name in JUDGES:
                judge = JUDGES[name]()
                judge.set_lm(judge_lm)
                self._judges[name] = judge
            elif name in JUDGED:
                metric = JUDGED[name]()
                metric.set_lm(judge_lm)
                self._judged[name] = metric

    @property
    def judges(self) -> list[dspy.Module]:
        """What asks a model."""
        return [*self._judges.values(), *self._judged.values()]

    def __call__(self, example: Example, prediction: dspy.Prediction, budget: int | None) -> Scores:
        """`budget` is the k of rankings that name none; None for all that was found."""
        scores = Scores()
        for name in self.names:
            if not self._defined(name, example, prediction):
                scores.undefined.append(name)
                continue
            try:
                scores.values[name] = self._score(name, example, prediction, budget)
            except EvaluationError as error:
                scores.failed[name] = str(error)
        return scores

    def _score(self, name: str, example: Example, prediction: dspy.Prediction, budget: int | None) -> float:
        if name in self._judges:
            return self._verdict(name, example, prediction.answer)
        if name in self._judged:
            return self._judged[name].score(example.to_dspy(), prediction)
        if name == DOCUMENTS:
            return float(distinct_documents(prediction.hits))
        if name == DISTANCE:
            return hit_distance(prediction.hits, self._required_embedder)
        if name in FACTS:
            return float(FACTS[name](prediction))
        return float(self._metric(name, budget)(example.to_dspy(), prediction))

    def _metric(self, name: str, budget: int | None) -> Metric:
        if name in self._own:
            return self._own[name]
        return similarity_metric(self._required_embedder) if name == SIMILARITY else named_metric(name, k=budget)

    @property
    def _required_embedder(self) -> Embedder:
        assert self._embedder is not None, "metrics of meaning come with an embedder"
        return self._embedder

    def _defined(self, name: str, example: Example, prediction: Any) -> bool:
        if name in self._own:
            return self._own[name].is_defined(example.to_dspy())
        return _defined(name, example, prediction)

    def _verdict(self, name: str, example: Example, answer: str) -> float:
        answered = AnsweredQuestion(example.id, example.question, example.answers, answer, example.answer_items)
        with dspy.context(adapter=KraqAdapter()):
            verdicts = judge_answers(self._judges[name], [answered], concurrency=1)
        if verdicts.failures:
            raise EvaluationError(verdicts.failures[0].reason)
        return verdicts.verdicts[0].score


def is_judged(metric: str) -> bool:
    """Whether a language model decides."""
    return metric in JUDGES or metric in JUDGED


def _defined(name: str, example: Example, prediction: Any) -> bool:
    kind = name.partition("@")[0]
    answers_nothing = prediction.get("answer") is None  # a retriever
    if answers_nothing and kind not in OF_RETRIEVAL and kind not in ("context_precision", "context_recall"):
        return ":" in name
    if kind == "accepted":
        return prediction.get("valid") is not None
    if kind in FACTS:
        return "proxy_used" in prediction
    if kind in (DOCUMENTS, DISTANCE):
        return len(prediction.hits) > 1
    if kind in JUDGED:
        return JUDGED[kind].is_defined(example.to_dspy(), prediction)
    if kind in METRICS or kind in RANKINGS or ":" in name:
        return named_metric(name).is_defined(example.to_dspy())
    return bool(example.answers)


def _looked_up(prediction: dspy.Prediction) -> float:
    """Share of the passages whose vectors were stored."""
    looked_up, embedded = int(prediction.n_looked_up), int(prediction.n_embedded)
    return looked_up / max(1, looked_up + embedded)
