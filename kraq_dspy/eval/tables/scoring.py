"""Scores one answered question, by the names that a table uses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy

from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.judging.judges import AnsweredQuestion, BinaryJudge, Judge, RubricJudge, judge_answers
from kraq_dspy.eval.metrics import retrieval
from kraq_dspy.eval.metrics.diversity import distinct_documents, hit_distance
from kraq_dspy.eval.metrics.for_dspy import ANSWER_METRICS, Metric, ranking_metric, similarity_metric
from kraq_dspy.models.lms.structured.adapter import KraqAdapter
from kraq_dspy.ports import Embedder

RANKING: Mapping[str, Callable[..., float]] = {
    "recall": retrieval.recall_at_k,
    "precision": retrieval.precision_at_k,
    "hits": retrieval.hits_at_k,
    "all_supporting": retrieval.all_supporting_at_k,
    "ndcg": retrieval.ndcg_at_k,
    "mrr": retrieval.mrr,
    "map": retrieval.average_precision,
}
"""With "@k" or, without, at the system's own budget."""

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

NAMES = (*ANSWER_METRICS, SIMILARITY, *JUDGES, *RANKING, DOCUMENTS, DISTANCE, *FACTS)


@dataclass(frozen=True, slots=True)
class Scores:
    """`undefined` are metrics that the question does not have (no gold answer, no known evidence): no failure."""

    values: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    undefined: list[str] = field(default_factory=list)


def require_metric(name: str) -> None:
    """Raises ConfigError for a name that is not known."""
    if name.partition("@")[0] not in NAMES:
        raise ConfigError(f"There is no metric {name!r}; there are: {', '.join(NAMES)}; most rankings take @k.")


class RowScorer:
    """Scores predictions by the metrics named. Raises ConfigError for a name that is not known. Safe for threads."""

    def __init__(self, names: Sequence[str], embedder: Embedder, judge_lm: dspy.LM | None = None) -> None:
        for name in names:
            require_metric(name)
        self.names = tuple(names)
        self._embedder = embedder
        self._judges: dict[str, Judge] = {}
        for name, kind in JUDGES.items():
            if name in names:
                judge = kind()
                judge.set_lm(judge_lm)
                self._judges[name] = judge

    def __call__(self, example: Example, prediction: dspy.Prediction, budget: int) -> Scores:
        """`budget` is the k of rankings that name none."""
        scores = Scores()
        for name in self.names:
            if not _defined(name, example, prediction):
                scores.undefined.append(name)
                continue
            try:
                scores.values[name] = self._score(name, example, prediction, budget)
            except EvaluationError as error:
                scores.failed[name] = str(error)
        return scores

    def _score(self, name: str, example: Example, prediction: dspy.Prediction, budget: int) -> float:
        if name in self._judges:
            return self._judged(name, example, prediction.answer)
        if name == DOCUMENTS:
            return float(distinct_documents(prediction.hits))
        if name == DISTANCE:
            return hit_distance(prediction.hits, self._embedder)
        if name in FACTS:
            return float(FACTS[name](prediction))
        return float(self._metric(name, budget)(example.to_dspy(), prediction))

    def _metric(self, name: str, budget: int) -> Metric:
        if name == SIMILARITY:
            return similarity_metric(self._embedder)
        if name in ANSWER_METRICS:
            return ANSWER_METRICS[name]
        kind, _, k = name.partition("@")
        return ranking_metric(kind, RANKING[kind], int(k) if k else budget)

    def _judged(self, name: str, example: Example, answer: str) -> float:
        answered = AnsweredQuestion(example.id, example.question, example.answers, answer, example.answer_items)
        with dspy.context(adapter=KraqAdapter()):
            verdicts = judge_answers(self._judges[name], [answered], concurrency=1)
        if verdicts.failures:
            raise EvaluationError(verdicts.failures[0].reason)
        return verdicts.verdicts[0].score


def is_judged(metric: str) -> bool:
    """Whether a language model decides."""
    return metric in JUDGES


def _defined(name: str, example: Example, prediction: Any) -> bool:
    kind = name.partition("@")[0]
    if kind in RANKING:
        return bool(example.supporting_ids)
    if kind == "accepted":
        return prediction.get("valid") is not None
    if kind in FACTS:
        return "proxy_used" in prediction
    if kind in (DOCUMENTS, DISTANCE):
        return len(prediction.hits) > 1
    return bool(example.answers)


def _looked_up(prediction: dspy.Prediction) -> float:
    """Share of the passages whose vectors were stored."""
    looked_up, embedded = int(prediction.n_looked_up), int(prediction.n_embedded)
    return looked_up / max(1, looked_up + embedded)
