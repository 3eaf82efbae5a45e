"""Lists what can be optimized, steps of the pipeline and programs over an index, and how each step is scored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import Step
from kraq_dspy.asset.graph.elements import GraphView, community_elements
from kraq_dspy.errors import ConfigError, EvaluationError, did_you_mean
from kraq_dspy.eval.metrics import generation
from kraq_dspy.eval.metrics.answers import check_references, normalise_answer, token_f1
from kraq_dspy.eval.metrics.for_dspy import METRICS, Metric, named_metric
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.optimize.rows import Row, RowKind
from kraq_dspy.programs.kraq.by_size import extractor
from kraq_dspy.programs.kraq.describe import AskQuestion, DescribeCommunity
from kraq_dspy.programs.kraq.extract_graph import ExtractGraph, ExtractNames
from kraq_dspy.programs.qa_search.program import NO_MATCH, numbered
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.records import Chunk, Claim, Community, Entity, Relationship, Summary
from kraq_dspy.settings import Settings
from kraq_dspy.signatures import (
    AnswerQuestion,
    ConfirmSameQuestion,
    DraftAnswer,
    FindSameQuestion,
    JudgeAnswer,
    VerifyDraft,
)
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program
from kraq_dspy.workspace.registry import PROGRAMS

QUESTION_FIELDS = frozenset(
    {"id", "question", "answers", "answer", "answer_items", "supporting_ids", "context_ids", "type", "level", "split"}
)
"""Of rows with questions: those of the data sets that this library reads, so that their files serve as they are."""


@dataclass(frozen=True)
class Target:
    """A program to optimize, how to read its rows, and how to score it.

    `role` is whose model it asks. `calls` is the most model calls that it makes for one row. `metrics` are those that
    can be named, the default first. `labelled` says that an example carries all outputs of the program's one predictor,
    so that it can be shown as a demonstration without asking a model.
    """

    name: str
    program: dspy.Module
    rows: RowKind
    metrics: Mapping[str, Metric]
    role: str = "default"
    calls: int = 1
    labelled: bool = False

    def metric(self, name: str | None) -> Metric:
        """Raises ConfigError for a name that it does not have."""
        if name is None:
            return next(iter(self.metrics.values()))
        if name not in self.metrics and (":" in name or self.metrics is METRICS):
            return named_metric(name)
        if name not in self.metrics:
            raise ConfigError(f"There is no metric {name!r} for {self.name}; there are: {', '.join(self.metrics)}.")
        return self.metrics[name]


class SingleStep(SavableModule):
    """A signature asked once: `answer`, `draft`, `verify` and `judge` as programs of their own."""

    def __init__(self, signature: type[dspy.Signature]) -> None:
        super().__init__()
        self.step = Step(signature)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        return await call(self.step, **inputs)

    forward = blocking(aforward)


def make_target(
    name: str,
    space: Workspace | None = None,
    *,
    retriever: str | None = None,
    scorer: BertScorer | None = None,
    settings: Settings | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Target:
    """The step or the program of that name. `space` is needed by programs, and by steps whose rows name ids.

    `scorer` measures the relevance of questions, by default with the packaged model; `settings` choose the program that
    extracts; `arguments` go to a program.
    Raises ConfigError for a name that is neither, or a program without an index.
    """
    if name in STEPS:
        return STEPS[name](_Source(space, retriever), settings or Settings(), scorer)
    if name in PROGRAMS:
        if space is None:
            raise ConfigError(f"The program {name!r} needs an index: --index DIR.")
        return _program(name, space, retriever, arguments or {})
    raise ConfigError(
        f"There is no step or program {name!r}{did_you_mean(name, [*STEPS, *PROGRAMS.names()])}; "
        f"steps: {', '.join(STEPS)}; programs: {', '.join(PROGRAMS.names())}."
    )


STEPS: Mapping[str, Callable[["_Source", Settings, BertScorer | None], Target]] = {
    "extraction": lambda source, settings, _: _extraction(source, extractor(settings)),
    "summary": lambda source, *_: _summary(source),
    "question-generation": lambda source, _, scorer: _generation(source, scorer or BertScorer.packaged()),
    "answering": lambda source, *_: _reading(source, "answering", AnswerQuestion, "answerer"),
    "drafting": lambda source, *_: _reading(source, "drafting", DraftAnswer, "drafter"),
    "verification": lambda *_: _verification(),
    "judging": lambda *_: _judging(),
    "matching": lambda *_: _matching(),
    "confirmation": lambda *_: _confirmation(),
}
"""What makes the target of a step, by its name."""


class _Source:
    """What an index adds to rows that name its records."""

    def __init__(self, space: Workspace | None, retriever: str | None) -> None:
        self._space = space
        self._retriever = retriever

    def require(self, row_field: str, instead: str) -> Workspace:
        if self._space is None:
            raise EvaluationError(f"the row has no {instead!r}; give it, or {row_field} and an index (--index DIR)")
        return self._space

    def passages(self, question: str) -> list[str]:
        space = self.require("a question", "passages")
        return [hit.chunk.passage for hit in space.retriever(self._retriever)(question, 10)]

    def passage(self, chunk_id: str) -> str:
        [chunk] = self.require("chunk_id", "passage").index.get(Chunk, [chunk_id])
        return str(chunk.passage)

    def elements(self, community_id: str) -> list[str]:
        space = self.require("community_id", "elements")
        [community] = space.index.get(Community, [community_id])
        limit = space.index.manifest.settings.community_tokens
        by_id, written = self._communities
        return community_elements(community, self._view, limit, written.get, by_id.get)

    def summary(self, community_id: str) -> str:
        [summary] = self.require("community_id", "summary").index.get(Summary, [community_id])
        return f"{summary.title}\n{summary.text}"

    @cached_property
    def _view(self) -> GraphView:
        index = self.require("community_id", "elements").index
        return GraphView.of(list(index.all(Entity)), list(index.all(Relationship)), list(index.all(Claim)))

    @cached_property
    def _communities(self) -> tuple[dict[str, Community], dict[str, Summary]]:
        index = self.require("community_id", "elements").index
        return {c.id: c for c in index.all(Community)}, {s.community_id: s for s in index.all(Summary)}


def _extraction(source: _Source, program: ExtractGraph | ExtractNames) -> Target:
    def example(row: Row) -> dspy.Example:
        passage = _text(row, "passage") if "passage" in row else source.passage(_text(row, "chunk_id"))
        triples = [tuple(triple) for triple in row["triples"]]
        for position, triple in enumerate(triples):
            if len(triple) != 3 or not all(isinstance(part, str) and part.strip() for part in triple):
                raise EvaluationError(f"triple {position} is {triple!r}; expected subject, predicate and object")
        if not triples:
            raise EvaluationError("the list of triples is empty")
        return _example(row, {"passage": passage}, {"triples": triples})

    fields = {"id", "passage", "chunk_id", "triples"}
    named = {metric.name: metric for metric in (TRIPLE_F1, LINK_F1)}
    return Target("extraction", program, RowKind(fields, example), named, "extractor", calls=program.most_calls)


def _summary(source: _Source) -> Target:
    def example(row: Row) -> dspy.Example:
        elements = _texts(row["elements"]) if "elements" in row else source.elements(_text(row, "community_id"))
        summary = row.get("summary", [])
        gold: dict[str, Any] = {
            "summaries": [summary] if isinstance(summary, str) else _texts(summary),
            "mentions": _texts(row.get("mentions", [])),
        }
        if not gold["summaries"] and not gold["mentions"]:
            raise EvaluationError("there is neither a reference `summary` nor `mentions`")
        return _example(row, {"elements": elements}, gold)

    fields = {"id", "elements", "community_id", "summary", "mentions"}
    named = {metric.name: metric for metric in (SUMMARY_ROUGE_L, MENTIONS)}
    return Target("summary", DescribeCommunity(), RowKind(fields, example), named, "summarizer")


def _generation(source: _Source, scorer: BertScorer) -> Target:
    def example(row: Row) -> dspy.Example:
        summary = _text(row, "summary") if "summary" in row else source.summary(_text(row, "community_id"))
        questions = _texts(row["questions"] if "questions" in row else [row["question"]])
        if not questions:
            raise EvaluationError("there are no reference questions")
        return _example(row, {"summary": summary}, {"questions": questions, "question": questions[0]})

    fields = {"id", "summary", "community_id", "questions", "question"}
    relevance = relevance_metric(scorer)
    rows = RowKind(fields, example)
    return Target("question-generation", AskQuestion(), rows, {"relevance": relevance}, "generator", labelled=True)


def _reading(source: _Source, name: str, signature: type[dspy.Signature], role: str) -> Target:
    def example(row: Row) -> dspy.Example:
        question = _text(row, "question")
        gold = _answers(row)  # looked at first: retrieval takes time
        passages = _texts(row["passages"]) if "passages" in row else source.passages(question)
        outputs = {"response": gold["answers"][0]} if name == "drafting" else {"answer": gold["answers"][0]}
        return _example(row, {"question": question, "passages": passages}, {**gold, **outputs})

    fields = {*QUESTION_FIELDS, "passages"}
    return Target(
        name, SingleStep(signature), RowKind(fields, example), METRICS, role, labelled=signature is AnswerQuestion
    )


def _verification() -> Target:
    def example(row: Row) -> dspy.Example:
        inputs = {name: _text(row, name) for name in ("question", "response", "rationale")}
        return _example(row, inputs, {"verdict": "Yes" if _truth(row, "supported") else "No"})

    fields = {"id", "question", "response", "rationale", "supported"}
    return _deciding("verification", VerifyDraft, fields, example, "verdict", "verifier")


def _judging() -> Target:
    def example(row: Row) -> dspy.Example:
        references = [str(answer) for answer in check_references(row["answers"])]
        inputs = {"question": _text(row, "question"), "reference_answers": references, "answer": _text(row, "answer")}
        return _example(row, inputs, {"correct": _truth(row, "right")})

    return _deciding("judging", JudgeAnswer, {*QUESTION_FIELDS, "right"}, example, "correct", "judge")


def _matching() -> Target:
    def example(row: Row) -> dspy.Example:
        questions = _texts(row["catalogue"])
        number = row["number"]
        if type(number) is not int or not (number == NO_MATCH or 1 <= number <= len(questions)):
            raise EvaluationError(f"number is {number!r}; expected 1 to {len(questions)}, or -1 for no match")
        listed = [numbered(place, text) for place, text in enumerate(questions, start=1)]
        return _example(row, {"question": _text(row, "question"), "catalogue": listed}, {"number": number})

    def label(example: dspy.Example) -> str:
        return "no match" if example.number == NO_MATCH else "match"

    fields = {"id", "question", "catalogue", "number"}
    return _deciding("matching", FindSameQuestion, fields, example, "number", "answerer", label)


def _confirmation() -> Target:
    def example(row: Row) -> dspy.Example:
        inputs = {"first_question": _text(row, "asked"), "second_question": _text(row, "stored")}
        return _example(row, inputs, {"same": _truth(row, "same")})

    return _deciding(
        "confirmation", ConfirmSameQuestion, {"id", "asked", "stored", "same"}, example, "same", "answerer"
    )


def _deciding(
    name: str,
    signature: type[dspy.Signature],
    fields: set[str],
    example: Callable[[Row], dspy.Example],
    decision: str,
    role: str,
    label: Callable[[dspy.Example], str] | None = None,
) -> Target:
    """A step with one output, the `decision`, which is right or wrong; a row's class is its `label`, or that itself."""
    rows = RowKind(fields, example, label or (lambda example: str(example[decision])))
    agreement = label_metric(decision, lambda example: example[decision])
    return Target(name, SingleStep(signature), rows, {"agreement": agreement}, role, labelled=True)


def _program(name: str, space: Workspace, retriever: str | None, arguments: Mapping[str, Any]) -> Target:
    def example(row: Row) -> dspy.Example:
        return _example(row, {"question": _text(row, "question")}, _answers(row))

    choice = choose_program(name, retriever, arguments, measured=True)
    program = space.make_program(choice)
    return Target(
        name,
        program,
        RowKind(QUESTION_FIELDS, example),
        METRICS,
        choice.role,
        calls=choice.most_calls(program),
    )


def _example(row: Row, inputs: Mapping[str, Any], gold: Mapping[str, Any]) -> dspy.Example:
    named = {"id": str(row["id"])} if "id" in row else {}
    return dspy.Example(**named, **gold, **inputs).with_inputs(*inputs)


def _text(row: Row, name: str) -> str:
    value = row[name]
    if not isinstance(value, str) or not value.strip():
        raise EvaluationError(f"{name} is {value!r}; expected text")
    return value


def _texts(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(text, str) for text in value):
        raise EvaluationError(f"expected a list of texts, found {value!r}")
    return list(value)


def _truth(row: Row, name: str) -> bool:
    value = row[name]
    if not isinstance(value, bool):
        raise EvaluationError(f"{name} is {value!r}; expected true or false")
    return value


def _answers(row: Row) -> dict[str, Any]:
    gold = row.get("answers")
    if gold is None and "answer" in row:
        gold = [row["answer"]]
    if gold is None:
        raise EvaluationError("there are no `answers`; leave questions without a known answer out")
    extra = {field: row[field] for field in ("answer_items", "supporting_ids") if row.get(field)}
    return {"answers": [str(answer) for answer in check_references(gold)], "type": str(row.get("type", "")), **extra}


Triple = tuple[str, str, str]
"""Subject, predicate, object."""


def triple_f1(gold: Sequence[Triple], predicted: Sequence[Triple]) -> float:
    """Harmonic mean of precision and recall of the triples, in [0, 1].

    Two triples are of one fact when subjects and objects are equal after normalisation; the credit is the word F1 of
    their predicates, since no two readers choose the same verb. Each triple counts once, with its best partner first.
    No prediction scores 0.0. Raises EvaluationError when `gold` is empty or has a blank part.
    """
    return _f1([_credits(triple, predicted, by_predicate=True) for triple in _checked(gold)], len(predicted))


def link_f1(gold: Sequence[Triple], predicted: Sequence[Triple]) -> float:
    """As `triple_f1`, without regard to the predicates."""
    return _f1([_credits(triple, predicted, by_predicate=False) for triple in _checked(gold)], len(predicted))


def _credits(triple: Triple, predicted: Sequence[Triple], *, by_predicate: bool) -> list[float]:
    ends = _ends(triple)
    credits = []
    for other in predicted:
        if _ends(other) != ends:
            credits.append(0.0)
        elif by_predicate:
            credits.append(token_f1([triple[1]], other[1]))
        else:
            credits.append(1.0)
    return credits


def _f1(credit: Sequence[Sequence[float]], n_predicted: int) -> float:
    return 2 * best_pairs(credit) / (len(credit) + n_predicted)


def best_pairs(credit: Sequence[Sequence[float]]) -> float:
    """The credit of the best pairs, each row and column used once."""
    pairs = sorted(
        ((value, row, column) for row, values in enumerate(credit) for column, value in enumerate(values) if value),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    rows: set[int] = set()
    columns: set[int] = set()
    total = 0.0
    for value, row, column in pairs:
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            total += value
    return total


def _ends(triple: Triple) -> tuple[str, str]:
    return normalise_answer(triple[0]), normalise_answer(triple[2])


def _checked(gold: Sequence[Triple]) -> Sequence[Triple]:
    if not gold:
        raise EvaluationError("There are no gold triples, so precision and recall are undefined.")
    for position, triple in enumerate(gold):
        if len(triple) != 3 or not all(isinstance(part, str) and part.strip() for part in triple):
            raise EvaluationError(f"Gold triple {position} is {triple!r}; expected subject, predicate and object.")
    return gold


def extraction_metric(name: str, function: Callable[[Sequence[Triple], Sequence[Triple]], float]) -> Metric:
    """`triple_f1` or `link_f1` over the example's `triples` and the prediction's relationships."""

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
        return float(scorer.score(references, [generated] * len(references)).max())

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
