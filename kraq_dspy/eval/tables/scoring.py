"""Scores one answered question, by the names that a table uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import dspy

from kraq_dspy.errors import ConfigError, EvaluationError, did_you_mean
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.judges import JUDGED
from kraq_dspy.eval.metrics.for_dspy import METRICS, RANKINGS, Metric, named_metric, similarity_metric
from kraq_dspy.eval.metrics.generation import require_packages
from kraq_dspy.eval.metrics.retrieval import distinct_documents
from kraq_dspy.ports import Embedder

SIMILARITY, RIGHT, DOCUMENTS = "answer_similarity", "right", "distinct_documents"
FACTS = {
    "proxy_used": lambda prediction: float(prediction.proxy_used),
    "looked_up": lambda prediction: float(
        prediction.n_looked_up / max(1, prediction.n_looked_up + prediction.n_embedded)
    ),
    "accepted": lambda prediction: float(prediction.valid),
}
"""What only some programs say of themselves: the share of vectors that were stored, or that the program's own validator
let the answer pass."""

NAMES = (*METRICS, SIMILARITY, *JUDGED, *RANKINGS, DOCUMENTS, *FACTS)
OF_RETRIEVAL = frozenset((*RANKINGS, "recall_of_support", "answer_found", DOCUMENTS))
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

    `judge_lm` is asked by metrics of JUDGED; `embedder` compares meanings, and may be None where no metric does. `own`
    are metrics that have no name here.
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
        self.judges = {name: JUDGED[name]() for name in names if name in JUDGED}
        for judge in self.judges.values():
            judge.set_lm(judge_lm)  # type: ignore[no-untyped-call]

    def __call__(self, example: Example, prediction: dspy.Prediction, budget: int | None) -> Scores:
        """`budget` is the k of rankings that name none; None for all that was found."""
        scores = Scores()
        shown = example.to_dspy()
        for name in self.names:
            if not self._is_defined(name, shown, prediction):
                scores.undefined.append(name)
                continue
            try:
                scores.values[name] = self._score(name, shown, prediction, budget)
            except EvaluationError as error:
                scores.failed[name] = str(error)
        return scores

    def _score(self, name: str, example: dspy.Example, prediction: dspy.Prediction, budget: int | None) -> float:
        if name in self._own:
            return float(self._own[name](example, prediction))
        if name in self.judges:
            return self.judges[name].score(example, prediction)
        if name == DOCUMENTS:
            return float(distinct_documents(prediction.hits))
        if name in FACTS:
            return float(FACTS[name](prediction))
        if name == SIMILARITY:
            assert self._embedder is not None, "a metric of meaning comes with an embedder"
            return float(similarity_metric(self._embedder)(example, prediction))
        return float(named_metric(name, k=budget)(example, prediction))

    def _is_defined(self, name: str, example: dspy.Example, prediction: dspy.Prediction) -> bool:
        kind = name.partition("@")[0]
        if name in self._own:
            return self._own[name].is_defined(example)
        if prediction.get("answer") is None and kind not in OF_RETRIEVAL:  # a retriever
            return ":" in name
        if kind in FACTS:
            return (prediction.get("valid") is not None) if kind == "accepted" else "proxy_used" in prediction
        if kind == DOCUMENTS:
            return len(prediction.hits) > 1
        if name in self.judges:
            return self.judges[name].is_defined(example, prediction)
        if kind == SIMILARITY:
            return bool(example.answers)
        return named_metric(name).is_defined(example)
