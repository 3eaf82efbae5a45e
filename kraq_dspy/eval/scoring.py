"""Scores one answered question, by the names that a table uses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import dspy

from kraq_dspy.errors import ConfigError, EvaluationError, did_you_mean
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.judges import CONTEXT_PRECISION, CONTEXT_RECALL, JUDGED
from kraq_dspy.eval.metrics.for_dspy import METRICS, RANKINGS, Metric, named_metric, similarity_metric
from kraq_dspy.eval.metrics.generation import require_packages
from kraq_dspy.models.lms.roles import StatesOfSteps
from kraq_dspy.ports import Embedder

SIMILARITY, RIGHT = "answer_similarity", "right"
FACTS: Mapping[str, tuple[str, Callable[[dspy.Prediction], float]]] = {
    "looked_up": ("n_looked_up", lambda answer: answer.n_looked_up / max(1, answer.n_looked_up + answer.n_embedded)),
    "accepted": ("valid", lambda answer: answer.valid),
}
"""What only some programs say of themselves, by the field that such a prediction has: the share of vectors that were
stored, or that the program's own validator let the answer pass."""

NAMES = (*METRICS, SIMILARITY, *JUDGED, *RANKINGS, *FACTS)
OF_RETRIEVAL = frozenset((*RANKINGS, "answer_found", CONTEXT_RECALL, CONTEXT_PRECISION))
"""What can be said of a retriever, which answers nothing."""


@dataclass(frozen=True, slots=True)
class Scores:
    """`undefined` are metrics that the question does not have (no gold answer, no known evidence): no failure."""

    values: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    undefined: list[str] = field(default_factory=list)


def is_built_in(name: str) -> bool:
    """Whether the metric is one of kraq's, all of which lie in [0, 1].

    >>> is_built_in("recall@10"), is_built_in("metric.py:points")
    (True, False)
    """
    return name.partition("@")[0] in NAMES


def is_of_answers(name: str) -> bool:
    """Whether the metric is one of kraq's that scores an answer, which no retriever gives."""
    return name.partition("@")[0] not in OF_RETRIEVAL and ":" not in name


def require_metric(name: str) -> None:
    """Raises ConfigError for a name that is not known, MissingExtraError if the metric lacks its
    package."""
    kind, at, _ = name.partition("@")
    is_own = ":" in name  # module:function or file.py:function
    takes_k = kind in RANKINGS
    if not is_own and (kind not in NAMES or (at and not takes_k)):
        raise ConfigError(
            f"There is no metric {name!r}{did_you_mean(kind, NAMES)}; there are: {', '.join(NAMES)}; most rankings "
            "take @k; your own as module:function or file.py:function."
        )

    if is_own or takes_k or kind in METRICS:
        named_metric(name)
    require_packages(kind)


class RowScorer:
    """Scores predictions by the metrics named. Raises as `require_metric` does. Safe for threads.

    `judge_lm` is asked by metrics of JUDGED; `embedder` compares meanings, and may be None if no metric does. `own`
    are metrics that have no name here. `states` are put into the metrics that ask a model.
    """

    def __init__(
        self,
        names: Sequence[str],
        embedder: Embedder | None,
        judge_lm: dspy.LM | None = None,
        own: Mapping[str, Metric] | None = None,
        states: StatesOfSteps | None = None,
    ) -> None:
        self._own = dict(own or {})
        for name in names:
            if name not in self._own:
                require_metric(name)

        self.names = list(names)
        self.judge_lm = judge_lm
        self._embedder = embedder
        self.judges = {name: JUDGED[name]() for name in names if name in JUDGED}
        for judge in self.judges.values():
            judge.embedder = embedder
            judge.set_lm(judge_lm)  # type: ignore[no-untyped-call]
            if states is not None:
                states.apply(judge)

    def __call__(self, example: Example, prediction: dspy.Prediction, budget: int | None) -> Scores:
        """`budget` is the k of rankings that name none; None for all that was found."""
        scores = Scores()
        shown = example.to_dspy()

        for name in self.names:
            try:
                value = self._score(name, shown, prediction, budget)
            except EvaluationError as error:
                scores.failed[name] = str(error)
                continue

            if value is None:
                scores.undefined.append(name)
            else:
                scores.values[name] = value
        return scores

    def _score(self, name: str, example: dspy.Example, prediction: dspy.Prediction, budget: int | None) -> float | None:
        """Score the answer; None if the metric is undefined."""
        kind = name.partition("@")[0]
        if name in self._own:
            return _measured(self._own[name], example, prediction)

        if is_of_answers(name) and prediction.get("answer") is None:  # a retriever's
            return None
        if kind in FACTS:
            field, fact = FACTS[kind]
            return None if prediction.get(field) is None else float(fact(prediction))
        if name in self.judges:
            judge = self.judges[name]
            return judge.score(example, prediction) if judge.is_defined(example) else None

        if kind == SIMILARITY:
            assert self._embedder is not None, "a metric of meaning comes with an embedder"
            return _measured(similarity_metric(self._embedder), example, prediction)
        return _measured(named_metric(name, k=budget), example, prediction)


def _measured(metric: Metric, example: dspy.Example, prediction: dspy.Prediction) -> float | None:
    return float(metric(example, prediction)) if metric.is_defined(example) else None
