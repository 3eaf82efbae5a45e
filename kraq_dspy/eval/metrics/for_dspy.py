"""Gives metrics names and the form that DSPy takes: `metric(example, prediction, trace=None, ...)`, feedback for GEPA.

    metric = named_metric("token_f1")  # or "recall@10", "my_metrics.py:politeness"
    metric(dspy.Example(question="Which city?", answer="Oslo"), dspy.Prediction(answer="Oslo"))  # 1.0

DSPy reads a metric's value in three ways. Evaluate averages it. Bootstrapping optimizers (they pass
`trace`) take it for yes or no, and 0.3 would be a yes. GEPA averages it, too, and where it passes the name of a
predictor it wants a Prediction with a score and a text, which is true even at score 0.0.

An example has `answer` or `answers` (for lists `answer_items`, for retrieval `supporting_ids`), as
`Example.to_dspy()` makes it; a prediction has `answer` (or `response`) and, for retrieval, `hits`. What is missing
raises EvaluationError that names the question.
"""

import contextlib
import datetime
import enum
import functools
import importlib
import math
import runpy
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import dspy

from kraq_dspy.errors import ConfigError, EvaluationError, did_you_mean
from kraq_dspy.eval.gold import told
from kraq_dspy.eval.metrics import answers, generation, retrieval
from kraq_dspy.eval.metrics.answers import answer_words, content_words
from kraq_dspy.eval.metrics.rag import RagOutcome, is_refused, is_unanswerable
from kraq_dspy.models.embedders.text_encoder import EmbedderLike, as_embedder
from kraq_dspy.records import Hit

_PLAIN = Real | Decimal | datetime.date | enum.Enum
"""What an answer may be beside text: a signature may type it."""
NO_HITS = "the prediction has no `hits`; programs return the chunks that they retrieved"
ScoreFunction = Callable[[Any, Any], float]
Explainer = Callable[[Any, Any, float], str]
"""What an optimizer that learns from texts (GEPA) is told of an example, a prediction and its score."""


def explain_answer(example: Any, prediction: Any, score: float) -> str:
    """The answer beside the gold ones: for metrics that have nothing more to say."""
    if score >= 1:
        return f"{answer_of(prediction)!r} is right."
    items = getattr(example, "answer_items", None)
    gold = ", ".join(repr(item[0]) for item in items) if items else " or ".join(map(repr, gold_of(example)[:3]))
    return f"{answer_of(prediction)!r} scores {score:.2f}; expected {gold}."


class ThresholdScore(float):
    """A score that is true only if it `passed`, that is, reached the metric's threshold.

    >>> float(ThresholdScore(0.3, passed=False)), bool(ThresholdScore(0.3, passed=False))
    (0.3, False)
    """

    passed: bool

    def __new__(cls, value: float, *, passed: bool) -> "ThresholdScore":
        score = super().__new__(cls, value)
        score.passed = passed
        return score

    def __bool__(self) -> bool:
        return self.passed


class ScoredFeedback(dspy.Prediction):
    """`score` and `feedback`, true only from the metric's threshold on."""

    def __init__(self, score: float, feedback: str, passed: bool) -> None:
        super().__init__(score=score, feedback=feedback)
        self._passed = passed

    def __bool__(self) -> bool:
        return self._passed


@dataclass(frozen=True, slots=True)
class Metric:
    """A score in [0, 1], as a function that DSPy takes.

    Args:
        name: the name of the metric.
        score: computes the score of an example and a prediction.
        explain: says in words what a score means, for GEPA.
        threshold: the score from which an answer is good enough for a demonstration.
        needs: fields that an example must have, such as "answers" or "supporting_ids".
        not_of: types of questions to which the metric does not apply.
        of_unanswerable: whether the metric also scores unanswerable questions, which have no gold answer.

    >>> exact_match(dspy.Example(answer="Oslo"), dspy.Prediction(answer="oslo"))
    1.0
    >>> exact_match(["Oslo", "Christiania"], "Rome")  # gold answers and a text do, too
    0.0
    """

    name: str
    score: ScoreFunction
    explain: Explainer = explain_answer
    threshold: float = 1.0
    needs: tuple[str, ...] = ("answers",)
    not_of: tuple[str, ...] = ()
    of_unanswerable: bool = False

    def __call__(
        self, example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> float | ScoredFeedback:
        """The score. With a `trace` it is true only from the threshold on; with `pred_name`, which GEPA gives where it
        wants feedback, the feedback comes with it."""
        if isinstance(prediction, str):
            gold = [example] if isinstance(example, str) else example
            if not isinstance(gold, dspy.Example):
                example = dspy.Example(answers=list(gold))
            prediction = dspy.Prediction(answer=prediction)
        score = self._scored(example, prediction)
        if pred_name is not None:
            return self._with_text(example, prediction, score)
        return score if trace is None else ThresholdScore(score, passed=score >= self.threshold)

    def is_defined(self, example: Any) -> bool:
        """Whether the example has what the metric needs."""
        if self.of_unanswerable and _is_unanswerable(example):
            return True

        has = set()
        if _gold_or_none(example) is not None:
            has.add("answers")
        if getattr(example, "supporting_ids", None):
            has.add("supporting_ids")
        return getattr(example, "type", "") not in self.not_of and has.issuperset(self.needs)

    def with_feedback(self) -> Callable[..., ScoredFeedback]:
        """The same metric with feedback in every call, also where GEPA does not ask for it."""

        def metric_with_feedback(
            example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
        ) -> ScoredFeedback:
            return self._with_text(example, prediction, self._scored(example, prediction))

        return metric_with_feedback

    def _with_text(self, example: Any, prediction: Any, score: float) -> ScoredFeedback:
        return ScoredFeedback(score, self.explain(example, prediction, score), score >= self.threshold)

    def _scored(self, example: Any, prediction: Any) -> float:
        try:
            return self.score(example, prediction)
        except EvaluationError as error:
            question = getattr(example, "id", None) or getattr(example, "question", None)
            raise EvaluationError(f"{self.name}, question {question!r}: {error}") from error


def named_metric(name: str, *, k: int | None = None) -> Metric:
    """Make the metric of a name. None of these metrics calls a model.

    Args:
        name: one of `METRICS` ("token_f1", "grounded", ...); one of `RANKINGS`, with or without a number
            ("recall@10"); or a function of yours ("package.module:function", "file.py:function"), which gets
            example and prediction and returns a number, a bool or a Prediction with a `score`.
        k: how many hits a ranking without a number counts; None for all.

    Returns:
        The metric, a function that DSPy takes.

    Raises:
        ConfigError: for an unknown name, or a function that cannot be loaded.

    >>> named_metric("token_f1")(["Oslo"], "in Oslo")
    0.6666666666666666
    """
    if name in METRICS:
        return METRICS[name]

    kind, at, places = name.partition("@")
    if kind in RANKINGS and (not at or (places.isdecimal() and int(places))):
        return _ranking(name if at or k is None else f"{name}@{k}", RANKINGS[kind], int(places) if at else k)
    if ":" in name:
        return own_metric(own_function(name), 1.0, name=name)

    known = [*METRICS, *RANKINGS]
    raise ConfigError(
        f"There is no metric {name!r}{did_you_mean(kind, known)}; there are: {', '.join(METRICS)}; with @k "
        f"{', '.join(RANKINGS)}; your own as module:function or file.py:function."
    )


@functools.cache
def own_function(name: str) -> Callable[..., Any]:
    """ "package.module:function" or "file.py:function". Raises ConfigError if there is none."""
    place, _, attribute = name.rpartition(":")
    try:
        names = runpy.run_path(place) if place.endswith(".py") else vars(importlib.import_module(place))
        function: Callable[..., Any] = names[attribute]
    except (ImportError, KeyError, OSError, SyntaxError) as error:
        raise ConfigError(f"{name!r} cannot be loaded: {type(error).__name__}: {error}.") from error
    if not callable(function):
        raise ConfigError(f"{name!r} is {function!r:.80}; expected a function.")
    return function


def own_metric(function: Callable[..., Any], threshold: float = 1.0, *, name: str = "") -> Metric:
    """Make a metric of a function `metric(example, prediction, trace=None)`.

    Args:
        function: returns a finite number, a bool, or a Prediction with a `score` (and `feedback`). kraq never passes
            a trace.
        threshold: the score from which an answer is good enough for a demonstration.
        name: the name of the metric; by default the name of the function.

    Returns:
        The metric.

    Raises:
        EvaluationError: when the metric is called and `function` returns no finite number.

    >>> own_metric(lambda example, prediction: len(prediction.answer) < 20, name="short").name
    'short'
    """
    if isinstance(function, Metric):
        return function
    called = name or getattr(function, "__name__", type(function).__name__)

    def score(example: Any, prediction: Any) -> float:
        value = function(_as_dspy_names_it(example), _with_evidence(prediction))
        number = _number(value.get("score") if isinstance(value, Mapping) else getattr(value, "score", value))
        if number is not None and math.isfinite(number):
            return number
        raise EvaluationError(f"the metric {called!r} returned {value!r}; expected a finite number, or one as `score`")

    def explain(example: Any, prediction: Any, score: float) -> str:
        value = function(_as_dspy_names_it(example), _with_evidence(prediction))
        return str(getattr(value, "feedback", None) or f"This scores {score:.2f}.")

    return Metric(called, score, explain, threshold, needs=())


def _number(value: Any) -> float | None:
    """A number of Python, numpy or torch; None for anything else, a text that reads as one too."""
    if hasattr(value, "item"):
        with contextlib.suppress(ValueError, TypeError, RuntimeError):
            value = value.item()
    return float(value) if isinstance(value, bool | Real | Decimal) else None


def _as_dspy_names_it(example: Any) -> Any:
    """The example with the fields that DSPy's own metrics read: `answer`, and `response` for SemanticF1."""
    if not isinstance(example, dspy.Example):
        return example

    gold = list(getattr(example, "answers", None) or [])
    own = getattr(example, "answer", None)
    is_answer = isinstance(own, str) or (isinstance(own, list) and all(isinstance(each, str) for each in own))
    named: dict[str, Any] = {}
    if gold and not is_answer:
        named["answer"] = gold[0] if len(gold) == 1 else gold
    if gold and not isinstance(getattr(example, "response", None), str):
        named["response"] = gold[0]
    return example.copy(**named) if named else example


def _with_evidence(prediction: Any) -> Any:
    """The prediction with its answer as `response`, and its passages as `context` and the like."""
    if not isinstance(prediction, dspy.Prediction):
        return prediction
    named: dict[str, Any] = {}
    if "response" not in prediction and isinstance(prediction.get("answer"), str):
        named["response"] = prediction.answer
    if prediction.get("hits") is not None:
        texts = [hit.chunk.passage for hit in prediction.hits]
        named |= {name: texts for name in ("context", "contexts", "passages") if name not in prediction}
    return dspy.Prediction(**{**dict(prediction.items()), **named}) if named else prediction


def similarity_metric(embedder: EmbedderLike, *, threshold: float = 0.8) -> Metric:
    """Make a metric of the cosine of the answer and the nearest gold answer.

    Args:
        embedder: the encoder. The name of the metric contains the name of the encoder.
        threshold: the cosine from which an answer is good enough for a demonstration.

    Returns:
        The metric, in [0, 1].

    >>> metric = similarity_metric(dspy.Embedder(lambda texts: [[1.0, 0.0]] * len(texts)))
    >>> metric(["Oslo"], "the city of Oslo")
    1.0
    """
    encoder = as_embedder(embedder)
    return Metric(
        f"answer_similarity({encoder.name})",
        lambda example, prediction: answers.answer_similarity(gold_of(example), answer_of(prediction), encoder),
        threshold=threshold,
    )


def rag_metric(answer: Callable[..., Any] | None = None) -> Metric:
    """Make a metric for whole RAG programs, with feedback for GEPA. The metric checks the answer, the evidence and
    refusals.

    >>> metric = rag_metric()  # the same as `rag_quality`
    >>> metric(dspy.Example(question="Who?", answerable=False), dspy.Prediction(answer="I do not know"))
    1.0
    >>> oslo = dspy.Example(question="Which city?", answers=["Oslo"])
    >>> metric(oslo, dspy.Prediction(answer="I do not know"), None, "answer").feedback
    "This was refused, which is wrong: the documents answer it. The right answer is 'Oslo'."

    If the documents answer the question, the metric `answer` (default `token_f1`) scores the answer. The score is
    halved if the program found no evidence. A refusal gets 0.0. If the documents do not answer the question, a
    refusal gets 1.0 and an answer gets 0.0. A question is unanswerable if the example's `answerable` is false or its
    `type` is "unanswerable".

    The evidence is the share of `supporting_ids` among the documents of the prediction's `hits`. If the example has no
    `supporting_ids`, the prediction's `passages` or `context` must contain a gold answer. If the prediction has neither
    `passages` nor `context`, evidence does not count. A prediction is a refusal if `refused` is true, if
    `space.ask(refuse=True)` refused the question, or if the prediction's text is a sentence such as "I do not know".
    `rag_metric` calls a model only if the metric that you pass calls one.
    """
    right = token_f1 if answer is None else own_metric(answer)

    def outcome(example: Any, prediction: Any) -> RagOutcome:
        answerable = not _is_unanswerable(example)
        refused = is_refused(prediction, answer_of(prediction))
        scored = float(right(example, prediction)) if answerable and not refused else 0.0
        return RagOutcome(answerable, refused, scored, _evidence_share(example, prediction) if answerable else None)

    def explain(example: Any, prediction: Any, score: float) -> str:
        what = outcome(example, prediction)
        gold = [] if not what.answerable else gold_of(example)
        has_passages = _found_texts(prediction) is not None
        ungrounded = _ungrounded(example, prediction) if has_passages and not what.refused else []
        return what.explained(answer_of(prediction), gold, _missing_documents(example, prediction), ungrounded)

    name = "rag_quality" if answer is None else f"rag_quality({right.name})"
    return Metric(
        name, lambda example, prediction: outcome(example, prediction).score, explain, 0.8, of_unanswerable=True
    )


def _is_unanswerable(example: Any) -> bool:
    return is_unanswerable(str(getattr(example, "type", "") or ""), getattr(example, "answerable", None))


def _evidence_share(example: Any, prediction: Any) -> float | None:
    """How much of the evidence the prediction has, in [0, 1]; None if nothing tells it."""
    supporting = frozenset(getattr(example, "supporting_ids", None) or ())
    if supporting and getattr(prediction, "hits", None) is not None:
        return 1 - len(_missing_documents(example, prediction)) / len(supporting)

    texts = _found_texts(prediction)
    gold = [each for each in gold_of(example) if each.casefold() not in answers.YES_NO]
    if texts is None or not gold:
        return None
    return max((answers.substring_match(gold, text) for text in texts), default=0.0)


def _missing_documents(example: Any, prediction: Any) -> list[str]:
    supporting = frozenset(getattr(example, "supporting_ids", None) or ())
    if getattr(prediction, "hits", None) is None:
        return []
    return sorted(supporting.difference(_documents(prediction)))


def _ranking(name: str, function: Callable[..., float], k: int | None) -> Metric:
    """A function of `retrieval` over the documents of the prediction's hits, best first, each counted once."""

    def explain(example: Any, prediction: Any, score: float) -> str:
        missing = sorted(_supporting(example) - set(_documents(prediction)[:k]))
        first = f"the first {k}" if k else "those found"
        if not missing:
            return f"All documents with the evidence are among {first}."
        return f"Of the documents with the evidence, {len(missing)} are not among {first}: {', '.join(missing)}."

    return Metric(
        name,
        lambda example, prediction: function(_supporting(example), _documents(prediction), k),
        explain,
        needs=("supporting_ids",),
    )


def _paper_match(example: Any, prediction: Any) -> float:
    """Right or wrong as the KRAQ papers count it: items of a list and yes or no (BioASQ), a claim's label (PubHealth),
    else whether the answer contains a gold one."""
    gold, answer = gold_of(example), answer_of(prediction)
    kind = getattr(example, "type", "")
    if items := getattr(example, "answer_items", None):
        return answers.substring_match_items([list(synonyms) for synonyms in items], answer)
    if kind == "veracity":
        return answers.label_accuracy(gold[0], answer)
    if kind == "yesno":
        return answers.label_accuracy(gold[0].lower(), answer, answers.YES_NO)
    return answers.substring_match(gold, answer)


def _answer_found(example: Any, prediction: Any) -> float:
    return max(
        (answers.substring_match(gold_of(example), text) for text in evidence_of(example, prediction)), default=0.0
    )


def _grounded(example: Any, prediction: Any) -> float:
    words = _telling_words(answer_of(prediction))
    return 1 - len(_ungrounded(example, prediction)) / len(words) if words else 0.0


def _telling_words(text: str) -> list[str]:
    return [word for word in dict.fromkeys(answer_words(text)) if content_words(word)]


def _ungrounded(example: Any, prediction: Any) -> list[str]:
    """The telling words of the answer that no retrieved passage has."""
    known = {word for text in evidence_of(example, prediction) for word in content_words(text)}
    return [word for word in _telling_words(answer_of(prediction)) if content_words(word) - known]


def _explain_grounded(example: Any, prediction: Any, score: float) -> str:
    if not _telling_words(answer_of(prediction)):
        return "There is no answer with words that a passage could have."
    words = _ungrounded(example, prediction)
    if not words:
        return "Every word of the answer stands in a retrieved passage."
    return f"No retrieved passage has these words of the answer: {', '.join(words)}. Say only what a passage says."


def gold_of(example: Any) -> Sequence[str]:
    gold = _gold_or_none(example)
    if gold is None:
        raise EvaluationError("the example has no `answers`; leave unanswerable questions out")
    several = gold if isinstance(gold, Iterable) and not isinstance(gold, str) else [gold]
    return [told(each) if isinstance(each, _PLAIN) else each for each in several]


def _gold_or_none(example: Any) -> Any:
    """The `answers`, be there none of them; `answer` where an example has no such field. The column `answer` of a file
    that comes along says "nan" if there is no answer."""
    gold = getattr(example, "answers", None)
    gold = getattr(example, "answer", None) if gold is None else gold
    return None if isinstance(gold, Sized) and not gold else gold


def _supporting(example: Any) -> frozenset[str]:
    supporting = getattr(example, "supporting_ids", None)
    if not supporting:
        raise EvaluationError("the example has no `supporting_ids`, so retrieval cannot be scored")
    return frozenset(supporting)


def answer_of(prediction: Any) -> str:
    answer = getattr(prediction, "answer", None)
    if answer is None:
        answer = getattr(prediction, "response", None)  # a draft's
    if isinstance(answer, list | tuple | set):
        return ", ".join(told(each) for each in answer)
    if not isinstance(answer, str | _PLAIN):
        raise EvaluationError(
            f"the prediction's `answer` is {answer!r}; expected a string, a number, a date or an enum"
        )
    return told(answer)


def evidence_of(example: Any, prediction: Any) -> list[str]:
    """The passages that an answer was read from: the prediction's `hits`, its `passages`, or those it was given.

    Raises EvaluationError if there are none of these.
    """
    found = _found_texts(prediction)
    if found is not None:
        return found

    is_shown = not isinstance(example, dspy.Example) or example._input_keys is None
    given = example if is_shown else example.inputs()  # other passages of an example are gold that nobody was shown
    shown = _texts_of(given)
    if not shown:
        raise EvaluationError(NO_HITS)
    return shown


def _found_texts(prediction: Any) -> list[str] | None:
    """The passages that a prediction says it was read from; None if it says nothing of them."""
    hits: Sequence[Hit] | None = getattr(prediction, "hits", None)
    if hits is not None:
        return [hit.chunk.passage for hit in hits]
    return _texts_of(prediction) or None


def _texts_of(holder: Any) -> list[str]:
    for field in ("passages", "context"):
        texts = getattr(holder, field, None)
        if texts:
            return [texts] if isinstance(texts, str) else [str(text) for text in texts]
    return []


def _documents(prediction: Any) -> list[str]:
    hits: Sequence[Hit] | None = getattr(prediction, "hits", None)
    if hits is None:
        raise EvaluationError(NO_HITS)
    return list(dict.fromkeys(hit.chunk.document_id for hit in hits))


def _answer_metric(name: str, function: Callable[[Sequence[str], str], float], threshold: float = 1.0) -> Metric:
    return Metric(
        name, lambda example, prediction: function(gold_of(example), answer_of(prediction)), threshold=threshold
    )


token_f1 = _answer_metric("token_f1", answers.token_f1, 0.8)
exact_match = _answer_metric("exact_match", answers.exact_match)
substring_match = _answer_metric("substring_match", answers.substring_match)
token_precision = _answer_metric("token_precision", lambda gold, predicted: answers.token_overlap(gold, predicted)[0])
token_recall = _answer_metric("token_recall", lambda gold, predicted: answers.token_overlap(gold, predicted)[1])
paper_match = Metric("paper_match", _paper_match, not_of=("summary",))
"""Undefined for BioASQ's summary questions: the papers match exact answers, and these have none."""
rouge_l = _answer_metric("rouge_l", generation.rouge_l, 0.5)
bleu_1 = _answer_metric("bleu_1", lambda gold, predicted: generation.bleu(gold, predicted, order=1), 0.5)
bleu_4 = _answer_metric("bleu_4", lambda gold, predicted: generation.bleu(gold, predicted, order=4), 0.5)
meteor = _answer_metric("meteor", generation.meteor, 0.5)
grounded = Metric("grounded", _grounded, _explain_grounded, 0.8, needs=())
"""Share of the answer's content words that stand in the hits; 0.0 without any. Asks no model: a passage that has the
words need not say so."""

answer_found = Metric(
    "answer_found",
    _answer_found,
    lambda example, prediction, score: f"{'A' if score else 'No'} retrieved passage has {gold_of(example)[0]!r}.",
)
"""1.0 if a retrieved passage contains a gold answer: retrieval without known documents."""

rag_quality = rag_metric()
"""Scores a whole RAG program, refusals too; see `rag_metric`."""

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        token_f1, exact_match, substring_match, token_precision, token_recall, paper_match,
        rouge_l, meteor, bleu_1, bleu_4, grounded, answer_found, rag_quality,
    )
}  # fmt: skip
"""Those that need no model, by name. The first is what answers are optimized by: no copied passage wins it."""

RANKINGS: Mapping[str, Callable[..., float]] = {
    "recall": retrieval.recall_at_k,
    "precision": retrieval.precision_at_k,
    "success": retrieval.success_at_k,
    "all_supporting": retrieval.all_supporting_at_k,
    "ndcg": retrieval.ndcg_at_k,
    "mrr": retrieval.mrr,
    "map": retrieval.average_precision,
}
"""Functions of `retrieval` over the documents that were found, named with "@k" ("recall@10")."""
