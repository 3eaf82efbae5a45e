"""Declares the steps that can be optimized by name: signature, module, rows, metrics, and rows of an index's own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import Step
from kraq_dspy.eval.metrics.for_dspy import METRICS, Metric
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.optimize import examples, index_rows, step_metrics
from kraq_dspy.optimize.row_values import QUESTION_CELLS, QUESTION_FIELDS, list_cell, number_cell, truth_cell
from kraq_dspy.optimize.rows import Row
from kraq_dspy.programs.conversation import StandaloneQuestion
from kraq_dspy.programs.kraq.by_size import extractor
from kraq_dspy.programs.kraq.describe import AskQuestion, ConfirmSame, DescribeCommunity, DescribeEntity
from kraq_dspy.programs.kraq.extract_graph import ExtractGraph
from kraq_dspy.programs.qa_search.critics import RateSyntheticPair
from kraq_dspy.settings import Settings
from kraq_dspy.signatures import (
    AnswerQuestion,
    AskSubQuestion,
    CheckAnswered,
    CheckSameAnswer,
    CheckStandAlone,
    CompleteQuestion,
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


@dataclass(frozen=True)
class OptimizableStep:
    """A step with all that an optimizer needs.

    `make` makes the program of the settings, an instance of `module`, which asks `signatures` of the model of `role`.
    A row has `inputs` and, to say what is `right`, one or more of those fields; `cells` read those of a csv file that
    are not text. `metric_names` are those of `metrics`, the default first. `labelled`: a row holds all that the step
    writes, so that it can be shown as it is. `index_rows` makes rows of an index, as `own_rows` says in words.
    """

    name: str
    signatures: tuple[type[dspy.Signature], ...]
    module: type[dspy.Module]
    role: str
    make: Callable[[Settings], dspy.Module]
    inputs: tuple[str, ...]
    right: tuple[str, ...]
    example: Callable[[Row], dspy.Example]
    metric_names: tuple[str, ...]
    metrics: Callable[[StepSource], Mapping[str, Metric]]
    index_rows: Callable[[Workspace], list[Row]]
    own_rows: str
    labelled: bool = False
    cells: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)


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

    forward = blocking(aforward)


def _asks(signature: type[dspy.Signature], name: str, **declared: Any) -> OptimizableStep:
    """A step that asks one signature and does nothing else."""
    return OptimizableStep(
        name=name,
        signatures=(signature,),
        module=SingleStep,
        make=lambda settings: SingleStep(signature),
        **declared,
    )


# Metrics: those that need an index or a scorer are made when the step is


def _fixed(*metrics: Metric) -> Callable[[StepSource], Mapping[str, Metric]]:
    named = {metric.name: metric for metric in metrics}
    return lambda source: named


def _of_questions(output: str) -> Callable[[StepSource], Mapping[str, Metric]]:
    """`relevance` by BERTScore, and with an index whether the question in `output` leads back to its passages."""

    def metrics(source: StepSource) -> Mapping[str, Metric]:
        scorer = source.scorer or BertScorer.packaged()
        named = {"relevance": step_metrics.relevance_metric(scorer, field=output)}
        if source.space is not None:
            retriever = source.space.retriever(source.retriever or "dense")
            named["leads_back"] = step_metrics.leads_back_metric(retriever, field=output)
        return named

    return metrics


_READING_CELLS = {**QUESTION_CELLS, "passages": list_cell}
_QUESTIONS_CELLS = {"questions": list_cell, "chunk_ids": list_cell}


def _asks_for_testset(kind: str, *inputs: str) -> OptimizableStep:
    """The step that asks questions of one kind for a test set: a question that may be used is right."""
    return OptimizableStep(
        name=f"testset-{kind}",
        signatures=(KINDS[kind].signature,),
        module=AskForRow,
        role="generator",
        make=lambda settings: AskForRow(kind),
        inputs=inputs,
        right=(),
        example=examples.inputs_alone(*inputs),
        metric_names=("usable",),
        metrics=_fixed(step_metrics.USABLE),
        index_rows=lambda space: index_rows.testset_rows(space, kind),
        own_rows="its passages and names",
        cells=dict.fromkeys(examples.IN_LISTS, list_cell),
    )


def _checks_testset(name: str, signature: type[dspy.Signature], output: str, *inputs: str) -> OptimizableStep:
    """A step that decides yes or no about a row of a test set."""
    return _asks(
        signature,
        f"testset-{name}",
        role="judge",
        inputs=inputs,
        right=(output,),
        example=examples.checked_row(output, *inputs),
        metric_names=("agreement",),
        metrics=_fixed(step_metrics.agreement_metric(output)),
        index_rows=lambda space: index_rows.testset_check_rows(space, output),
        own_rows="questions that it answers, also with another's passage",
        labelled=True,
        cells={output: truth_cell},
    )


STEPS: Mapping[str, OptimizableStep] = {
    step.name: step
    for step in (
        OptimizableStep(
            name="extraction",
            signatures=(ExtractElements, FindMissedElements),
            module=ExtractGraph,
            role="extractor",
            make=extractor,
            inputs=("passage",),
            right=("triples",),
            example=examples.extraction,
            metric_names=("triple_f1", "link_f1"),
            metrics=_fixed(step_metrics.TRIPLE_F1, step_metrics.LINK_F1),
            index_rows=index_rows.extraction_rows,
            own_rows="its passages and the links read from them",
            cells={"triples": list_cell},
        ),
        _asks(
            FindMissedElements,
            "gleaning",
            role="extractor",
            inputs=("passage", "found"),
            right=("missed",),
            example=examples.gleaning,
            metric_names=("missed_f1",),
            metrics=_fixed(step_metrics.MISSED_F1),
            index_rows=index_rows.gleaning_rows,
            own_rows="its extractions, one entity hidden in each",
            cells={"missed": list_cell},
        ),
        OptimizableStep(
            name="description",
            signatures=(MergeDescriptions,),
            module=DescribeEntity,
            role="summarizer",
            make=lambda settings: DescribeEntity(),
            inputs=("name", "descriptions"),
            right=("description",),
            example=examples.description,
            metric_names=("facts_kept", "rouge_l"),
            metrics=_fixed(step_metrics.FACTS_KEPT, step_metrics.reference_metric("description")),
            index_rows=index_rows.description_rows,
            own_rows="names that several passages describe",
            cells={"descriptions": list_cell},
        ),
        OptimizableStep(
            name="same-entity",
            signatures=(ConfirmSameEntity,),
            module=ConfirmSame,
            role="summarizer",
            make=lambda settings: ConfirmSame(),
            inputs=("first", "second"),
            right=("same",),
            example=examples.same_entity,
            metric_names=("agreement",),
            metrics=_fixed(step_metrics.agreement_metric("same")),
            index_rows=index_rows.same_entity_rows,
            own_rows="spellings that it merged, and entities that share a word",
            labelled=True,
            cells={"same": truth_cell},
        ),
        OptimizableStep(
            name="summary",
            signatures=(SummarizeCommunity,),
            module=DescribeCommunity,
            role="summarizer",
            make=lambda settings: DescribeCommunity(),
            inputs=("elements",),
            right=("mentions", "summary"),
            example=examples.summary,
            metric_names=("mentions", "rouge_l"),
            metrics=_fixed(step_metrics.MENTIONS, step_metrics.reference_metric("summary")),
            index_rows=index_rows.summary_rows,
            own_rows="its communities, their central names and summaries",
            cells={"elements": list_cell, "mentions": list_cell},
        ),
        OptimizableStep(
            name="question-generation",
            signatures=(GenerateQuestion,),
            module=AskQuestion,
            role="generator",
            make=lambda settings: AskQuestion(),
            inputs=("summary",),
            right=("questions", "question", "chunk_ids"),
            example=examples.generation,
            metric_names=("relevance", "leads_back"),
            metrics=_of_questions("question"),
            index_rows=index_rows.generation_rows,
            own_rows="its summaries and their questions",
            labelled=True,
            cells=_QUESTIONS_CELLS,
        ),
        _asks(
            AnswerQuestion,
            "answering",
            role="answerer",
            inputs=("question", "passages"),
            right=tuple(sorted(QUESTION_FIELDS - {"id", "question"})),
            example=examples.answering,
            metric_names=tuple(METRICS),
            metrics=lambda source: METRICS,
            index_rows=index_rows.reading_rows,
            own_rows=index_rows.KNOWN_PAIRS,
            labelled=True,
            cells=_READING_CELLS,
        ),
        _asks(
            DraftAnswer,
            "drafting",
            role="drafter",
            inputs=("question", "passages"),
            right=tuple(sorted(QUESTION_FIELDS - {"id", "question"})),
            example=examples.drafting,
            metric_names=tuple(METRICS),
            metrics=lambda source: METRICS,
            index_rows=index_rows.reading_rows,
            own_rows=index_rows.KNOWN_PAIRS,
            cells=_READING_CELLS,
        ),
        _asks(
            VerifyDraft,
            "verification",
            role="verifier",
            inputs=("question", "response", "rationale"),
            right=("supported",),
            example=examples.verification,
            metric_names=("agreement",),
            metrics=_fixed(step_metrics.agreement_metric("verdict")),
            index_rows=index_rows.verification_rows,
            own_rows=index_rows.KNOWN_PAIRS + ", also with another's answer",
            labelled=True,
            cells={"supported": truth_cell},
        ),
        _asks(
            JudgeAnswer,
            "judging",
            role="judge",
            inputs=("question", "answers", "answer"),
            right=("right", *sorted(QUESTION_FIELDS - {"id", "question", "answers", "answer"})),
            example=examples.judging,
            metric_names=("agreement",),
            metrics=_fixed(step_metrics.agreement_metric("correct")),
            index_rows=index_rows.judging_rows,
            own_rows=index_rows.KNOWN_PAIRS + ", also with another's answer",
            labelled=True,
            cells={**QUESTION_CELLS, "right": truth_cell},
        ),
        _asks(
            FindSameQuestion,
            "matching",
            role="answerer",
            inputs=("question", "catalogue"),
            right=("number",),
            example=examples.matching,
            metric_names=("agreement",),
            metrics=_fixed(step_metrics.agreement_metric("number")),
            index_rows=index_rows.matching_rows,
            own_rows="its questions in other words, among the nearest others",
            labelled=True,
            cells={"catalogue": list_cell, "number": number_cell},
        ),
        _asks(
            ConfirmSameQuestion,
            "confirmation",
            role="answerer",
            inputs=("asked", "stored"),
            right=("same",),
            example=examples.confirmation,
            metric_names=("agreement",),
            metrics=_fixed(step_metrics.agreement_metric("same")),
            index_rows=index_rows.confirmation_rows,
            own_rows="its questions in other words, and the nearest others",
            labelled=True,
            cells={"same": truth_cell},
        ),
        OptimizableStep(
            name="critics",
            signatures=(RateGroundedness, RateRelevance, RateStandAlone),
            module=RateSyntheticPair,
            role="judge",
            make=lambda settings: RateSyntheticPair(AUDIENCE),
            inputs=("question", "answer", "passage"),
            right=("accepted",),
            example=examples.critics,
            metric_names=("agreement",),
            metrics=_fixed(step_metrics.agreement_metric("rejected_by", label=bool)),
            index_rows=index_rows.critics_rows,
            own_rows=index_rows.KNOWN_PAIRS + ", also with another's passage",
            cells={"accepted": truth_cell},
        ),
        _asks(
            AskSubQuestion,
            "decomposition",
            role="answerer",
            inputs=("information",),
            right=("questions", "question", "chunk_ids"),
            example=examples.decomposition,
            metric_names=("relevance", "leads_back"),
            metrics=_of_questions("sub_question"),
            index_rows=index_rows.decomposition_rows,
            own_rows="its summaries and their questions",
            labelled=True,
            cells=_QUESTIONS_CELLS,
        ),
        OptimizableStep(
            name="conversation",
            signatures=(CompleteQuestion,),
            module=StandaloneQuestion,
            role="rewriter",
            make=lambda settings: StandaloneQuestion(),
            inputs=("question", "turns"),
            right=("complete",),
            example=examples.conversation,
            metric_names=("word_f1", "rouge_l"),
            metrics=_fixed(step_metrics.WORD_F1, step_metrics.reference_metric("question")),
            index_rows=index_rows.conversation_rows,
            own_rows=index_rows.KNOWN_PAIRS + ", after a turn about the same or another thing",
            cells={"turns": list_cell, "complete": list_cell},
        ),
        _asks_for_testset("fact", "passage", "about"),
        _asks_for_testset("bridge", "first_passage", "second_passage", "link"),
        _asks_for_testset("list", "passages", "shared"),
        _asks_for_testset("comparison", "first_passage", "second_passage", "names"),
        _asks_for_testset("broad", "passages", "about"),
        _checks_testset("alone", CheckStandAlone, "stands_alone", "question"),
        _checks_testset("gold", CheckAnswered, "answered", "question", "answer", "passage"),
        _checks_testset("same", CheckSameAnswer, "same", "question", "first_answer", "second_answer"),
        OptimizableStep(
            name="testset-wording",
            signatures=(ParaphraseQuestion,),
            module=PutOtherwise,
            role="generator",
            make=lambda settings: PutOtherwise(),
            inputs=("question", "avoid"),
            right=(),
            example=examples.inputs_alone("question", "avoid"),
            metric_names=("other_words",),
            metrics=_fixed(step_metrics.OTHER_WORDS),
            index_rows=index_rows.testset_wording_rows,
            own_rows="questions that it answers, and their words",
            cells={"avoid": list_cell},
        ),
    )
}
"""By name, in the order in which an index and then an answer need them."""
