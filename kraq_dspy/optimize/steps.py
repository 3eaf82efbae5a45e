"""The table of the steps that can be optimized by name: step, signatures, metrics, rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import Step
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.answers import check_references
from kraq_dspy.eval.metrics.for_dspy import METRICS, Metric
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.optimize import index_rows, step_metrics
from kraq_dspy.optimize.row_values import (
    QUESTION_CELLS,
    QUESTION_FIELDS,
    answers_in,
    example_of,
    list_cell,
    number_cell,
    optional_texts,
    text_in,
    texts_in,
    truth_cell,
    yes_or_no,
)
from kraq_dspy.optimize.rows import Row
from kraq_dspy.programs.conversation import StandaloneQuestion, turns_of
from kraq_dspy.programs.kraq.by_size import asked_extractor
from kraq_dspy.programs.kraq.describe import AskQuestion, ConfirmSame, DescribeCommunity, DescribeEntity
from kraq_dspy.programs.kraq.extract_graph import ExtractGraph
from kraq_dspy.programs.qa_search.critics import RateSyntheticPair
from kraq_dspy.programs.qa_search.program import NO_MATCH, numbered
from kraq_dspy.settings import Settings
from kraq_dspy.signatures import (
    AnswerQuestion,
    AskSubQuestion,
    CheckAnswered,
    CheckSameAnswer,
    CheckStandAlone,
    CompleteQuestion,
    ConfirmEvidence,
    ConfirmSameEntity,
    ConfirmSameQuestion,
    DraftAnswer,
    ExtractElements,
    FindMissedElements,
    FindSameQuestion,
    GenerateQuestion,
    JudgeAnswer,
    MergeDescriptions,
    ParaphraseQuestion,
    RateGroundedness,
    RateRelevance,
    RateStandAlone,
    SummarizeCommunity,
    VerifyDraft,
)
from kraq_dspy.state import SavableModule
from kraq_dspy.testset.asking import AskForRow, PutOtherwise
from kraq_dspy.testset.kinds import KINDS
from kraq_dspy.workspace import Workspace

AUDIENCE = "people who look things up in this corpus"
"""Whom the critics of a pair have before them, where no row is about others."""


@dataclass(frozen=True)
class StepSource:
    """What a step may need beside its rows: settings, the index, a retriever by name, a scorer of questions."""

    settings: Settings
    space: Workspace | None = None
    retriever: str | None = None
    scorer: BertScorer | None = None


Reader = Callable[[Row, str], Any]
"""Takes the value of a field out of a row. Raises EvaluationError for one that is not as it should be."""
Cell = Callable[[str], Any]
"""Reads the cell of a csv file that is not text."""
Measure = Metric | Callable[[StepSource], Metric | None]
"""A metric, or what makes it; None without the index that it needs."""


class SingleStep(SavableModule):
    """A signature asked once, as a program of its own.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"answer": "London"}])):
    ...     SingleStep(AnswerQuestion)(passages=["Ada lived in London."], question="Where did Ada live?").answer
    'London'
    """

    def __init__(self, signature: type[dspy.Signature]) -> None:
        super().__init__()
        self.step = Step(signature)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        return await call(self.step, **inputs)


@dataclass(frozen=True)
class OptimizableStep:
    """A step that `kraq optimize` knows by name.

    Attributes:
        name: the name of the step.
        signatures: the signatures of the step.
        role: the role whose model the step calls.
        inputs: the input fields of an example, each with a function that reads the field.
        right: the fields that can be the label. An example has one or more of these fields. A function reads cells of
            a csv file that are not text.
        gold: takes the label out of a row.
        measures: the metrics by name, the default first.
        own: makes groups of rows of an index.
        own_rows: what these rows are, in words.
        module: the class of the step's program.
        maker: makes the program from the settings, if the class takes arguments.
        labelled: whether a row has all outputs and can be a demonstration unchanged.
        fields: the names of the inputs in the signature, if different.
    """

    name: str
    signatures: tuple[type[dspy.Signature], ...]
    role: str
    inputs: Mapping[str, Reader]
    right: Mapping[str, Cell | None]
    gold: Callable[[Row], Mapping[str, Any]]
    measures: Mapping[str, Measure] | tuple[Metric, ...]
    own: Callable[[Workspace], index_rows.Rows]
    own_rows: str
    module: type[dspy.Module] = SingleStep
    maker: Callable[[Settings], dspy.Module] | None = None
    labelled: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def _measures(self) -> Mapping[str, Measure]:
        return self.measures if isinstance(self.measures, Mapping) else {each.name: each for each in self.measures}

    @property
    def metric_names(self) -> tuple[str, ...]:
        return tuple(self._measures)

    @property
    def cells(self) -> Mapping[str, Cell]:
        """What reads the cells of a csv file that are not text, by their columns."""
        lists = {name: list_cell for name, read in self.inputs.items() if read in _LISTS}
        return lists | {name: cell for name, cell in self.right.items() if cell is not None}

    def make(self, settings: Settings) -> dspy.Module:
        """A program that asks the step."""
        if self.maker is not None:
            return self.maker(settings)
        return SingleStep(*self.signatures) if self.module is SingleStep else self.module()

    def example(self, row: Row) -> dspy.Example:
        """The row as the step is asked. Raises EvaluationError or KeyError for one that is not as it should be."""
        right = self.gold(row)
        return example_of(
            row, {self.fields.get(each, each): read(row, each) for each, read in self.inputs.items()}, right
        )

    def index_rows(self, space: Workspace) -> list[Row]:
        """Rows of an index."""
        return list(chain.from_iterable(index_rows.drawn(self.own(space))))

    def metrics(self, source: StepSource) -> Mapping[str, Metric]:
        """The metrics by name, without those that need an index if `source` has none."""
        if self.measures is METRICS:
            return METRICS
        made = {name: each if isinstance(each, Metric) else each(source) for name, each in self._measures.items()}
        return {name: metric for name, metric in made.items() if metric is not None}


# What is right, by a row: the gold fields of an example


def _triples(row: Row) -> dict[str, Any]:
    return {"triples": step_metrics.checked_triples([tuple(triple) for triple in row["triples"]])}


def _summary(row: Row) -> dict[str, Any]:
    references, mentions = optional_texts(row, "summary"), optional_texts(row, "mentions")
    if not references and not mentions:
        raise EvaluationError("there is neither a reference `summary` nor `mentions`")
    return {"references": references, "mentions": mentions}


def _questions(output: str) -> Callable[[Row], dict[str, Any]]:
    """The reference questions, the first as the step's `output`, and the passages that they should find."""

    def gold(row: Row) -> dict[str, Any]:
        questions = texts_in(row["questions"] if "questions" in row else [row["question"]])
        if not questions:
            raise EvaluationError("there are no reference questions")
        return {"questions": questions, output: questions[0], "chunk_ids": optional_texts(row, "chunk_ids")}

    return gold


def _answer(row: Row) -> dict[str, Any]:
    gold = answers_in(row)
    return {**gold, "answer": gold["answers"][0]}


def _number(row: Row) -> dict[str, Any]:
    count, number = len(texts_in(row["catalogue"])), row["number"]
    if type(number) is not int or not (number == NO_MATCH or 1 <= number <= count):
        raise EvaluationError(f"number is {number!r}; expected 1 to {count}, or {NO_MATCH} for no match")
    return {"number": number}


def _complete(row: Row) -> dict[str, Any]:
    references = optional_texts(row, "complete")
    if not references:
        raise EvaluationError("there is no `complete` question to compare with")
    if not turns_of(row["turns"]):
        raise EvaluationError("turns is empty; expected what was said before the question")
    return {"references": references}


def _nothing(row: Row) -> dict[str, Any]:
    """A question for a test set is judged by itself."""
    return {}


# Inputs


def _texts(row: Row, name: str) -> list[str]:
    return texts_in(row[name])


def _one_or_more(row: Row, name: str) -> list[str]:
    """Texts, or one text as a list of one."""
    if isinstance(row[name], str):
        return [text_in(row, name)]
    try:
        return texts_in(row[name])
    except EvaluationError as error:
        raise EvaluationError(f"{name}: {error}") from error


def _numbered(row: Row, name: str) -> list[str]:
    return [numbered(place, text) for place, text in enumerate(texts_in(row[name]), start=1)]


def _references(row: Row, name: str) -> list[str]:
    return [str(answer) for answer in check_references(row[name])]


def _as_it_is(row: Row, name: str) -> Any:
    return row[name]


_LISTS: tuple[Reader, ...] = (_texts, _one_or_more, _numbered, _references, _as_it_is)
"""Readers of what is a list in a cell, too."""
_QUESTION_RIGHT: Mapping[str, Cell | None] = {
    name: QUESTION_CELLS.get(name) for name in sorted(QUESTION_FIELDS - {"id", "question"})
}


# Metrics


def _relevance(output: str) -> Callable[[StepSource], Metric]:
    """BERTScore of the question in `output`."""
    return lambda source: step_metrics.relevance_metric(source.scorer or BertScorer.packaged(), field=output)


def _leads_back(output: str) -> Callable[[StepSource], Metric | None]:
    """With an index, whether the question in `output` leads back to its passages."""

    def metric(source: StepSource) -> Metric | None:
        if source.space is None:
            return None
        return step_metrics.leads_back_metric(source.space.retriever(source.retriever or "dense"), field=output)

    return metric


# The table


def _decides(field: str, name: str, label: Callable[[bool], Any] = bool) -> dict[str, Any]:
    """The cells, gold and metric of a step whose output `field` is yes or no, which rows call `name`."""
    return {
        "right": {name: truth_cell},
        "gold": lambda row: {field: label(yes_or_no(row, name))},
        "measures": (step_metrics.agreement_metric(field),),
    }


def _asks_for_testset(kind: str, **inputs: Reader) -> OptimizableStep:
    """The step that asks questions of one kind for a test set: a question that may be used is right."""
    return OptimizableStep(
        f"testset-{kind}", (KINDS[kind].signature,), "generator", inputs, {}, _nothing, (step_metrics.USABLE,),
        lambda space: index_rows.testset_rows(space, kind), "its passages and names",
        AskForRow, lambda settings: AskForRow(kind),
    )  # fmt: skip


def _checks_testset(
    name: str, signature: type[dspy.Signature], output: str, inputs: tuple[str, ...], contrast: index_rows.Contrast
) -> OptimizableStep:
    """A step that decides yes or no about a row of a test set."""
    return OptimizableStep(
        f"testset-{name}", (signature,), "judge", dict.fromkeys(inputs, text_in), **_decides(output, output),
        own=index_rows.contrasts(output, contrast, index_rows.made_pairs),
        own_rows="questions that it answers, also with another's passage", labelled=True,
    )  # fmt: skip


STEPS: Mapping[str, OptimizableStep] = {
    step.name: step
    for step in (
        OptimizableStep(
            "extraction", (ExtractElements, FindMissedElements), "extractor",
            {"passage": text_in}, {"triples": list_cell}, _triples,
            (step_metrics.TRIPLE_F1, step_metrics.LINK_F1),
            index_rows.extraction_rows, "its passages and the links read from them",
            module=ExtractGraph, maker=asked_extractor,
        ),
        OptimizableStep(
            "gleaning", (FindMissedElements,), "extractor",
            {"passage": text_in, "found": text_in}, {"missed": list_cell},
            lambda row: {"missed": texts_in(row["missed"])},
            (step_metrics.MISSED_F1,),
            index_rows.gleaning_rows, "its extractions, one entity hidden in each",
        ),
        OptimizableStep(
            "description", (MergeDescriptions,), "summarizer",
            {"name": text_in, "descriptions": _texts}, {"description": None},
            lambda row: {"references": optional_texts(row, "description")},
            (step_metrics.FACTS_KEPT, step_metrics.reference_metric("description")),
            index_rows.description_rows, "names that several passages describe", module=DescribeEntity,
        ),
        OptimizableStep(
            "same-entity", (ConfirmSameEntity,), "summarizer",
            {"first": text_in, "second": text_in}, **_decides("same", "same"),
            own=index_rows.same_entity_rows,
            own_rows="spellings that it merged, and entities that share a word", module=ConfirmSame, labelled=True,
        ),
        OptimizableStep(
            "summary", (SummarizeCommunity,), "summarizer",
            {"elements": _texts}, {"mentions": list_cell, "summary": None}, _summary,
            (step_metrics.MENTIONS, step_metrics.reference_metric("summary")),
            index_rows.summary_rows, "its communities, their central names and summaries", module=DescribeCommunity,
        ),
        OptimizableStep(
            "question-generation", (GenerateQuestion,), "generator",
            {"summary": text_in}, {"questions": list_cell, "question": None, "chunk_ids": list_cell},
            _questions("question"), {"relevance": _relevance("question"), "leads_back": _leads_back("question")},
            index_rows.asked_summaries("summary"), "its summaries and their questions",
            module=AskQuestion, labelled=True,
        ),
        OptimizableStep(
            "evidence", (ConfirmEvidence,), "judge",
            dict.fromkeys(("question", "passage"), text_in), **_decides("answers", "answers"),
            own=index_rows.contrasts("answers", index_rows.other_passage),
            own_rows="questions that it answers, also with another's passage", labelled=True,
        ),
        OptimizableStep(
            "answering", (AnswerQuestion,), "answerer",
            {"question": text_in, "passages": _texts}, _QUESTION_RIGHT, _answer, METRICS,
            index_rows.reading_rows, index_rows.KNOWN_PAIRS, labelled=True,
        ),
        OptimizableStep(
            "drafting", (DraftAnswer,), "drafter",
            {"question": text_in, "passages": _texts}, _QUESTION_RIGHT, answers_in, METRICS,
            index_rows.reading_rows, index_rows.KNOWN_PAIRS,
        ),
        OptimizableStep(
            "verification", (VerifyDraft,), "verifier",
            dict.fromkeys(("question", "response", "rationale"), text_in),
            **_decides("verdict", "supported", lambda value: "Yes" if value else "No"),
            own=index_rows.contrasts("supported", lambda pair, other: (
                {"question": pair.question, "rationale": pair.telling_sentence},
                {"response": pair.answer},
                {"response": other.answer},
            )),
            own_rows=index_rows.KNOWN_PAIRS + ", also with another's answer", labelled=True,
        ),
        OptimizableStep(
            "judging", (JudgeAnswer,), "judge",
            {"question": text_in, "answers": _references, "answer": text_in},
            {"right": truth_cell, **{each: _QUESTION_RIGHT[each] for each in _QUESTION_RIGHT
                                     if each not in ("answers", "answer")}},
            lambda row: {"correct": yes_or_no(row, "right")}, (step_metrics.agreement_metric("correct"),),
            index_rows.contrasts("right", lambda pair, other: (
                {"question": pair.question, "answers": [pair.answer]},
                {"answer": pair.telling_sentence},
                {"answer": other.answer},
            )),
            index_rows.KNOWN_PAIRS + ", also with another's answer",
            labelled=True, fields={"answers": "reference_answers"},
        ),
        OptimizableStep(
            "matching", (FindSameQuestion,), "answerer",
            {"question": text_in, "catalogue": _numbered}, {"number": number_cell}, _number,
            (step_metrics.agreement_metric("number"),),
            index_rows.matching_rows, "its questions in other words, among the nearest others", labelled=True,
        ),
        OptimizableStep(
            "confirmation", (ConfirmSameQuestion,), "answerer",
            {"asked": text_in, "stored": text_in}, **_decides("same", "same"),
            own=index_rows.confirmation_rows,
            own_rows="its questions in other words, and the nearest others", labelled=True,
            fields={"asked": "first_question", "stored": "second_question"},
        ),
        OptimizableStep(
            "critics", (RateGroundedness, RateRelevance, RateStandAlone), "judge",
            dict.fromkeys(("question", "answer", "passage"), text_in), {"accepted": truth_cell},
            lambda row: {"rejected_by": not yes_or_no(row, "accepted")},
            (step_metrics.agreement_metric("rejected_by", label=bool),),
            index_rows.contrasts("accepted", lambda pair, other: (
                {"question": pair.question},
                {"answer": pair.answer, "passage": pair.passages[0]},
                {"answer": other.answer, "passage": other.passages[0]},
            )),
            index_rows.KNOWN_PAIRS + ", also with another's passage",
            module=RateSyntheticPair, maker=lambda settings: RateSyntheticPair(AUDIENCE),
        ),
        OptimizableStep(
            "decomposition", (AskSubQuestion,), "answerer",
            {"information": text_in}, {"questions": list_cell, "question": None, "chunk_ids": list_cell},
            _questions("sub_question"),
            {"relevance": _relevance("sub_question"), "leads_back": _leads_back("sub_question")},
            index_rows.asked_summaries("information"), "its summaries and their questions", labelled=True,
        ),
        OptimizableStep(
            "conversation", (CompleteQuestion,), "rewriter",
            {"question": text_in, "turns": _as_it_is}, {"complete": list_cell}, _complete,
            (step_metrics.WORD_F1, step_metrics.reference_metric("question")),
            index_rows.conversation_rows,
            index_rows.KNOWN_PAIRS + ", after a turn about the same or another thing", module=StandaloneQuestion,
        ),
        _asks_for_testset("fact", passage=text_in, about=_one_or_more),
        _asks_for_testset("bridge", first_passage=text_in, second_passage=text_in, link=text_in),
        _asks_for_testset("list", passages=_one_or_more, shared=text_in),
        _asks_for_testset("comparison", first_passage=text_in, second_passage=text_in, names=_one_or_more),
        _asks_for_testset("broad", passages=_one_or_more, about=_one_or_more),
        _checks_testset(
            "alone", CheckStandAlone, "stands_alone", ("question",),
            lambda pair, other: ({}, {"question": pair.question}, index_rows.pointing_back(pair.question)),
        ),
        _checks_testset(
            "gold", CheckAnswered, "answered", ("question", "answer", "passage"),
            lambda pair, other: (
                {"question": pair.question, "answer": pair.answer},
                {"passage": pair.passages[0]},
                {"passage": other.passages[0]},
            ),
        ),
        _checks_testset(
            "same", CheckSameAnswer, "same", ("question", "first_answer", "second_answer"),
            lambda pair, other: (
                {"question": pair.question, "second_answer": pair.answer},
                {"first_answer": f"It is {pair.answer}."},
                {"first_answer": other.answer},
            ),
        ),
        OptimizableStep(
            "testset-wording", (ParaphraseQuestion,), "generator",
            {"question": text_in, "avoid": _one_or_more}, {}, _nothing, (step_metrics.OTHER_WORDS,),
            index_rows.testset_wording_rows, "questions that it answers, and their words", module=PutOtherwise,
        ),
    )
}  # fmt: skip
"""By name, in the order in which an index and then an answer need them."""
