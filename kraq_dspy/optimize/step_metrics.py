"""Scores single steps, for DSPy's optimizers: each by a core scorer in [0, 1] inside a `Metric`."""

from collections.abc import Callable, Sequence
from typing import Any

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics import generation
from kraq_dspy.eval.metrics.bertscore import BertScorer
from kraq_dspy.eval.metrics.for_dspy import Metric
from kraq_dspy.eval.metrics.normalise import normalise_answer
from kraq_dspy.eval.metrics.triples import Triple, link_f1, triple_f1


def extraction_metric(name: str, function: Callable[[Sequence[Triple], Sequence[Triple]], float]) -> Metric:
    """A function of `eval.triples` over the example's `triples` and the prediction's relationships."""

    def explain(example: Any, prediction: Any, score: float) -> str:
        predicted = {(normalise_answer(s), normalise_answer(o)) for s, _, o in _triples(prediction)}
        missing = [t for t in example.triples if (normalise_answer(t[0]), normalise_answer(t[2])) not in predicted]
        listed = "; ".join(" | ".join(triple) for triple in missing[:5])
        extra = len(_triples(prediction)) - (len(example.triples) - len(missing))
        return (f"Missing: {listed}. " if missing else "No link is missing. ") + (
            f"{extra} links are not wanted; name things as the wanted triples do." if extra > 0 else ""
        )

    return Metric(name, lambda example, prediction: function(example.triples, _triples(prediction)), explain, 0.5)


TRIPLE_F1 = extraction_metric("triple_f1", triple_f1)
LINK_F1 = extraction_metric("link_f1", link_f1)


def _mentions(example: Any, prediction: Any) -> float:
    names = example.get("mentions")
    if not names:
        raise EvaluationError("the example has no `mentions`: names that a good summary has")
    text = f" {normalise_answer(prediction.title + ' ' + prediction.summary)} "
    return sum(f" {normalise_answer(name)} " in text for name in names) / len(names)


def _explain_mentions(example: Any, prediction: Any, score: float) -> str:
    text = f" {normalise_answer(prediction.title + ' ' + prediction.summary)} "
    missing = [name for name in example.mentions if f" {normalise_answer(name)} " not in text]
    return f"Not mentioned: {', '.join(missing)}." if missing else "All that matters is mentioned."


MENTIONS = Metric("mentions", _mentions, _explain_mentions, 0.8)
"""Share of the example's `mentions` that the title or the summary names."""

SUMMARY_ROUGE_L = Metric(
    "rouge_l",
    lambda example, prediction: generation.rouge_l(_reference_summaries(example), prediction.summary),
    lambda example, prediction, score: f"ROUGE-L {score:.2f} against: {_reference_summaries(example)[0]}",
    0.4,
)
"""ROUGE-L of the summary against the example's reference summaries."""


def _reference_summaries(example: Any) -> Sequence[str]:
    references = example.get("summaries")
    if not references:
        raise EvaluationError("the example has no reference `summary`; give one, or `mentions` and --metric mentions")
    return list(references)


def relevance_metric(scorer: BertScorer, threshold: float = 0.7) -> Metric:
    """BERTScore F1 of the generated question with the nearest of the example's `questions` (KRAQ paper 4.2).

    The model's name is part of the metric's: figures of different ones must not be compared.
    """

    def relevance(example: Any, prediction: Any) -> float:
        references = list(example.questions)
        generated = prediction.question
        if not generated.strip():
            return 0.0
        return float(scorer.score(references, [generated] * len(references)).f1.max())

    def explain(example: Any, prediction: Any, score: float) -> str:
        return f"{prediction.question!r} scores {score:.2f}; people asked: {' or '.join(example.questions[:3])}"

    return Metric(f"relevance({scorer.name})", relevance, explain, threshold)


def label_metric(field: str, expected: Callable[[Any], Any]) -> Metric:
    """Agreement: is the predicted `field` what `expected` says of the example?"""

    def score(example: Any, prediction: Any) -> float:
        return float(getattr(prediction, field, None) == expected(example))

    def explain(example: Any, prediction: Any, score: float) -> str:
        value = getattr(prediction, field, None)
        return f"{value} is right." if score else f"{value} is wrong; people said {expected(example)}."

    return Metric("agreement", score, explain)


def _triples(prediction: Any) -> list[Triple]:
    return [(link.source, link.predicate, link.target) for link in prediction.relationships]
