"""Gives metrics the form that DSPy takes: `metric(example, prediction, trace=None)`, and with feedback for GEPA.

Each is one core scorer that returns a float, with thin wrappers around it, because DSPy reads a metric's value in three
ways: Evaluate averages it; bootstrapping optimizers (`trace` is given) take it for yes or no, where 0.3 would be a yes;
GEPA wants a score and a text in a Prediction, whose truth value is True even at score 0.0.

`example` needs `answers` (for lists `answer_items`, for retrieval `supporting_ids`), as `Example.to_dspy()` makes it;
`prediction` needs `answer` or, for retrieval, `hits`. What is missing raises EvaluationError that names the question.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics import answers, generation, labels
from kraq_dspy.eval.metrics.labels import PUBHEALTH_LABELS, Labels, parse_label
from kraq_dspy.eval.metrics.normalise import answer_words, content_words
from kraq_dspy.models.embedders.adapted import EmbedderLike, as_embedder
from kraq_dspy.records import Hit

__all__ = [
    "Metric",
    "ScoredFeedback",
    "bleu_1",
    "bleu_4",
    "exact_match",
    "grounded",
    "label_accuracy",
    "label_metric",
    "list_exact_match",
    "meteor",
    "paper_match",
    "ranking_metric",
    "recall_of_support",
    "rouge_l",
    "similarity_metric",
    "strict_exact_match",
    "token_f1",
    "token_precision",
    "token_recall",
]

ScoreFunction = Callable[[Any, Any], float]
Explainer = Callable[[Any, Any, float], str]
RankingFunction = Callable[[frozenset[str], Sequence[str], int], float]


class ScoredFeedback(dspy.Prediction):
    """`score` and `feedback`, true only from the metric's threshold on."""

    def __init__(self, score: float, feedback: str, passed: bool) -> None:
        super().__init__(score=score, feedback=feedback)
        self._passed = passed

    def __bool__(self) -> bool:
        return self._passed


@dataclass(frozen=True, slots=True)
class Metric:
    """A scorer in [0, 1] with what DSPy needs around it. From `threshold` on, an answer is good enough for a demo."""

    name: str
    score: ScoreFunction
    explain: Explainer
    threshold: float = 1.0

    def __call__(self, example: Any, prediction: Any, trace: Any = None) -> float | bool:
        """The score; whether it reaches the threshold when an optimizer gives a `trace`."""
        score = self._scored(example, prediction)
        return score if trace is None else score >= self.threshold

    def with_feedback(self) -> Callable[..., ScoredFeedback]:
        """The same metric for GEPA, which learns from the text; other optimizers may take it too."""

        def metric_with_feedback(
            example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
        ) -> ScoredFeedback:
            score = self._scored(example, prediction)
            return ScoredFeedback(score, self.explain(example, prediction, score), score >= self.threshold)

        return metric_with_feedback

    def _scored(self, example: Any, prediction: Any) -> float:
        try:
            return self.score(example, prediction)
        except EvaluationError as error:
            question = getattr(example, "id", None) or getattr(example, "question", None)
            raise EvaluationError(f"{self.name}, question {question!r}: {error}") from error


def _paper_match(example: Any, prediction: Any) -> float:
    """Right or wrong as the KRAQ papers count it: items of a list (BioASQ), a claim's label (PubHealth), else exact
    match."""
    if getattr(example, "answer_items", None):
        return answers.list_exact_match(_items(example), _answer(prediction))
    if getattr(example, "type", "") == "veracity":
        return labels.label_accuracy(_gold(example)[0], _answer(prediction))
    return answers.exact_match(_gold(example), _answer(prediction))


def label_metric(known: Labels = PUBHEALTH_LABELS) -> Metric:
    """Is the label that the answer names the first of `answers`?"""

    def explain(example: Any, prediction: Any, score: float) -> str:
        if score:
            return "The label is right."
        named = parse_label(_answer(prediction), known)
        outcome = f"The answer names the label {named!r}" if named else "The answer names no label, or more than one"
        return f"{outcome}; the right one is {_gold(example)[0]!r}. Begin with one of: {', '.join(known)}."

    return Metric(
        "label_accuracy",
        lambda example, prediction: labels.label_accuracy(_gold(example)[0], _answer(prediction), known),
        explain,
    )


def similarity_metric(embedder: EmbedderLike, *, threshold: float = 0.8) -> Metric:
    """`answers.answer_similarity` by this embedder; its name is part of the metric's."""
    encoder = as_embedder(embedder)
    return Metric(
        f"answer_similarity({encoder.name})",
        lambda example, prediction: answers.answer_similarity(_gold(example), _answer(prediction), encoder),
        _explain_answer,
        threshold,
    )


def ranking_metric(name: str, function: RankingFunction, k: int, *, threshold: float = 1.0) -> Metric:
    """A function of `retrieval` over the documents of the prediction's hits, best first, each counted once."""

    def explain(example: Any, prediction: Any, score: float) -> str:
        ranked = _documents(prediction)[:k]
        missing = sorted(_supporting(example) - set(ranked))
        if not missing:
            return f"All documents with the evidence are among the first {k}."
        return f"Of the documents with the evidence, {len(missing)} are not among the first {k}: {', '.join(missing)}."

    return Metric(
        f"{name}@{k}",
        lambda example, prediction: function(_supporting(example), _documents(prediction), k),
        explain,
        threshold,
    )


def _recall_of_support(example: Any, prediction: Any) -> float:
    return len(_supporting(example) & set(_documents(prediction))) / len(_supporting(example))


def _explain_support(example: Any, prediction: Any, score: float) -> str:
    missing = sorted(_supporting(example) - set(_documents(prediction)))
    if not missing:
        return "All documents with the evidence were retrieved."
    return (
        f"{len(missing)} of {len(_supporting(example))} documents with the evidence were missed: {', '.join(missing)}."
    )


def _grounded(example: Any, prediction: Any) -> float:
    words = _telling_words(_answer(prediction))
    return 1 - len(_ungrounded(prediction)) / len(words) if words else 0.0


def _telling_words(text: str) -> list[str]:
    return [word for word in dict.fromkeys(answer_words(text)) if content_words(word)]


def _ungrounded(prediction: Any) -> list[str]:
    """The telling words of the answer that no retrieved passage has."""
    known = {word for hit in _hits(prediction) for word in content_words(hit.chunk.passage)}
    return [word for word in _telling_words(_answer(prediction)) if content_words(word) - known]


def _explain_grounded(example: Any, prediction: Any, score: float) -> str:
    if not _telling_words(_answer(prediction)):
        return "There is no answer with words that a passage could have."
    words = _ungrounded(prediction)
    if not words:
        return "Every word of the answer stands in a retrieved passage."
    return f"No retrieved passage has these words of the answer: {', '.join(words)}. Say only what a passage says."


def _explain_answer(example: Any, prediction: Any, score: float) -> str:
    gold, answer = " or ".join(repr(reference) for reference in _gold(example)[:3]), _answer(prediction)
    if score >= 1:
        return f"{answer!r} is right."
    if not answer.strip():
        return f"There is no answer; expected {gold}."
    return f"{answer!r} scores {score:.2f}; expected {gold}. Say just that, in the reference's words."


def _explain_match(example: Any, prediction: Any, score: float) -> str:
    if not getattr(example, "answer_items", None):
        return _explain_answer(example, prediction, score)
    items = _items(example)
    named = answers.items_found(items, _answer(prediction))
    missing = ", ".join(item[0] for item, is_found in zip(items, named, strict=True) if not is_found)
    return f"{sum(named)} of {len(items)} items are named." + (f" Missing: {missing}." if missing else "")


def _gold(example: Any) -> Sequence[str]:
    gold = getattr(example, "answers", None)
    if not gold:
        raise EvaluationError("the example has no `answers`; leave unanswerable questions out")
    return list(gold)


def _items(example: Any) -> Sequence[Sequence[str]]:
    items = getattr(example, "answer_items", None)
    if not items:
        raise EvaluationError("the example has no `answer_items`; they are for questions whose answer is a list")
    return [list(synonyms) for synonyms in items]


def _supporting(example: Any) -> frozenset[str]:
    supporting = getattr(example, "supporting_ids", None)
    if not supporting:
        raise EvaluationError("the example has no `supporting_ids`, so retrieval cannot be scored")
    return frozenset(supporting)


def _answer(prediction: Any) -> str:
    answer = getattr(prediction, "answer", None)
    if not isinstance(answer, str):
        raise EvaluationError(f"the prediction's `answer` is {answer!r}; expected a string")
    return answer


def _hits(prediction: Any) -> Sequence[Hit]:
    hits: Sequence[Hit] | None = getattr(prediction, "hits", None)
    if hits is None:
        raise EvaluationError("the prediction has no `hits`; programs return the chunks that they retrieved")
    return hits


def _documents(prediction: Any) -> list[str]:
    return list(dict.fromkeys(hit.chunk.document_id for hit in _hits(prediction)))


def _answer_metric(name: str, function: Callable[[Sequence[str], str], float], *, threshold: float = 1.0) -> Metric:
    return Metric(
        name, lambda example, prediction: function(_gold(example), _answer(prediction)), _explain_answer, threshold
    )


paper_match = Metric("paper_match", _paper_match, _explain_match)
exact_match = _answer_metric("exact_match", answers.exact_match)
strict_exact_match = _answer_metric("strict_exact_match", answers.strict_exact_match)
token_f1 = _answer_metric("token_f1", answers.token_f1, threshold=0.8)
token_precision = _answer_metric("token_precision", lambda gold, predicted: answers.token_overlap(gold, predicted)[0])
token_recall = _answer_metric("token_recall", lambda gold, predicted: answers.token_overlap(gold, predicted)[1])
list_exact_match = Metric(
    "list_exact_match",
    lambda example, prediction: answers.list_exact_match(_items(example), _answer(prediction)),
    _explain_match,
)
label_accuracy = label_metric()
rouge_l = _answer_metric("rouge_l", generation.rouge_l, threshold=0.5)
bleu_1 = _answer_metric("bleu_1", lambda gold, predicted: generation.bleu(gold, predicted, order=1), threshold=0.5)
bleu_4 = _answer_metric("bleu_4", lambda gold, predicted: generation.bleu(gold, predicted, order=4), threshold=0.5)
meteor = _answer_metric("meteor", generation.meteor, threshold=0.5)
recall_of_support = Metric("recall_of_support", _recall_of_support, _explain_support)
"""Share of the documents with the evidence (`supporting_ids`) among those of the hits."""
grounded = Metric("grounded", _grounded, _explain_grounded, threshold=0.8)
"""Share of the answer's content words that stand in the hits; 0.0 without any. Asks no model: a passage that has the
words need not say so."""

ANSWER_METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        exact_match,
        token_f1,
        token_precision,
        token_recall,
        strict_exact_match,
        paper_match,
        rouge_l,
        meteor,
        bleu_1,
        bleu_4,
    )
}
"""Those of single answers, by name."""
