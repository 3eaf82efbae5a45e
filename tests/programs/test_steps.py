"""Every step of every program can be swapped: for a signature, for instructions, for a module."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dspy
import numpy as np
import pytest
from dspy.utils import DummyLM

from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.judges import BinaryJudge, RubricJudge
from kraq_dspy.programs import (
    K2RAG,
    KRAQ,
    QARAG,
    AskQuestion,
    AskRandomQuestion,
    CombinedRetrieveRAG,
    ConfirmSame,
    DescribeCommunity,
    DescribeEntity,
    ExtractGraph,
    ExtractNames,
    GraphGlobalSearch,
    GraphLocalSearch,
    KraqScore,
    NaiveGraphRAG,
    QASearch,
    RateSyntheticPair,
    RereadSyntheticPair,
    Shorten,
    SpeculativeRAG,
    SummarizeCluster,
    TraditionalRAG,
    VoteScore,
    WritePairs,
    WriteSyntheticPair,
)
from kraq_dspy.programs.graph.graph_local_search import LocalContext
from kraq_dspy.programs.shared.steps import check_steps, signature_for
from kraq_dspy.records import CatalogueEntry
from kraq_dspy.signatures import AnswerQuestion

PASSAGE = "The Rhine flows from Switzerland through Basel to the North Sea."
QUESTION = "Where does the Rhine end?"
LONG = " ".join(f"The castle of {year} is old." for year in range(40))


def texts(question: str) -> list[str]:
    return [PASSAGE]


class Seen:
    """Embeds nothing: one passage needs no clusters."""

    def encode(self, question: str, passages: list[str]) -> Any:
        return np.ones((len(passages), 2), dtype=np.float32)


class Graph:
    k = 1

    def __call__(self, question: str) -> LocalContext:
        shown = {"reports": ["A town."], "entities": ["Keep: a castle"], "relationships": [], "passages": []}
        return LocalContext((), (), (), (), shown, 10)


class Answers:
    """One prepared question."""

    entry = CatalogueEntry(1, "Where does the river Rhine end?", "In the sea.", "approved")

    def exact(self, question: str) -> None:
        return None

    def nearest(self, question: str, k: int, similarity: float = 0.0) -> list[CatalogueEntry]:
        return [self.entry]


def local() -> GraphLocalSearch:
    program = GraphLocalSearch(None, None)  # type: ignore[arg-type]
    program.context = Graph()  # type: ignore[assignment]
    return program


def first_words(text: str, words: int) -> str:
    return " ".join(text.split()[:words])


class FirstWords:
    name = "first"
    __call__ = staticmethod(first_words)


class Says(dspy.Module):
    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer="The sea.", hits=[])


ANSWERED = {
    "example": dspy.Example(question=QUESTION, answer="The sea"),
    "prediction": dspy.Prediction(answer="The sea"),
}
PROGRAMS: list[tuple[Callable[[], Any], dict[str, Any]]] = [
    (lambda: TraditionalRAG(texts), {"question": QUESTION}),
    (lambda: CombinedRetrieveRAG(texts, ["Which rivers are there?"]), {"question": QUESTION}),
    (local, {"question": QUESTION}),
    (lambda: GraphGlobalSearch(texts), {"question": QUESTION}),
    (lambda: NaiveGraphRAG(Graph()), {"question": QUESTION}),  # type: ignore[arg-type]
    (lambda: K2RAG(Graph(), texts, Shorten(FirstWords())), {"question": QUESTION}),
    (lambda: QARAG(texts, variant="v"), {"question": QUESTION}),
    (lambda: QARAG(texts), {"question": QUESTION}),
    (lambda: QASearch(Says(), Answers()), {"question": QUESTION}),  # type: ignore[arg-type]
    (lambda: SpeculativeRAG(texts, Seen(), k=1, m=1, scorer=VoteScore()), {"question": QUESTION}),  # type: ignore[arg-type]
    (ExtractGraph, {"passage": PASSAGE}),
    (ExtractNames, {"passage": PASSAGE}),
    (ConfirmSame, {"first": "Rhine", "second": "Rhein"}),
    (DescribeEntity, {"name": "Rhine", "descriptions": ["a river", "a long river"]}),
    (DescribeCommunity, {"elements": ["Rhine: a river"]}),
    (AskQuestion, {"summary": PASSAGE}),
    (AskRandomQuestion, {"passages": [PASSAGE]}),
    (Shorten, {"text": LONG}),
    (WritePairs, {"passage": PASSAGE}),
    (WriteSyntheticPair, {"passage": PASSAGE}),
    (lambda: RateSyntheticPair("readers"), {"question": QUESTION, "answer": "The sea", "passage": PASSAGE}),
    (RereadSyntheticPair, {"question": QUESTION, "answer": "The sea", "passage": PASSAGE}),
    (SummarizeCluster, {"passages": [PASSAGE]}),
    (BinaryJudge, ANSWERED),
    (RubricJudge, ANSWERED),
]
UNASKED = {
    ("K2RAG", "shorten"),  # a program of its own
    ("QARAG", "write_pairs"),
    ("SpeculativeRAG", "scorer"),
    ("BinaryJudge", "judge_list"),  # for lists alone
}
"""Steps that these programs do not ask here, or that are programs with steps of their own."""

REPLY = {
    "answer": "The sea", "account": "The Rhine ends in the North Sea.", "sub_question": "Where is the Rhine?",
    "points": '[{"point": "The Rhine ends in the sea.", "importance": 80}]', "sub_questions": '["Where?"]',
    "pairs": '[{"question": "Where does it end?", "answer": "In the sea."}]', "valid": "yes", "number": "1",
    "same": "True", "rationale": "The passage says so.", "response": "The sea",
    "entities": '[{"name": "Rhine", "type": "river", "description": "a river"}]', "relationships": "[]",
    "claims": "[]", "names": '["Rhine"]', "description": "a river", "title": "Rhine", "summary": "The Rhine.",
    "findings": "[]", "question": "Through which city does the Rhine flow?", "shortened": "Old castles.",
    "groundedness": "5", "relevance": "5", "stand_alone": "5", "rewritten": "Rhine mouth", "searches": '["Rhine"]',
    "rewritings": '["rewrite", "keywords", "answer", "core"]', "keywords": '["Rhine"]', "guess": "The sea",
    "core": "Rhine end", "correct": "True", "grade": "5", "feedback": "Right.", "verdict": "Yes",
    "evaluation": "Fine.", "missing": "none", "mood": "sure", "reasoning": "It says so.",
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    make: Callable[[], Any]
    inputs: dict[str, Any]
    step: str


def places() -> list[Any]:
    swapped = []
    for make, inputs in PROGRAMS:
        program = make()
        name = type(program).__name__
        for step in program.asks:
            if (name, step) not in UNASKED and getattr(program, step, None) is not None:
                swapped.append(pytest.param(Place(make, inputs, step), id=f"{name}-{step}"))
    return swapped


def model() -> DummyLM:
    return DummyLM([REPLY] * 40)


def ask(program: Any, inputs: dict[str, Any], lm: DummyLM) -> dict[str, Any]:
    """The prediction's fields; a verdict's further outputs."""
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        outcome = program(**inputs)
    return dict(outcome.items()) if isinstance(outcome, dspy.Prediction) else dict(outcome.extras)


def first(value: Any) -> Any:
    """Of a step that is asked several times, what it returned first."""
    return value[0] if isinstance(value, list) else value


@pytest.mark.parametrize("place", places())
def test_a_further_output_of_any_step_comes_into_the_prediction(place: Place) -> None:
    program = place.make()
    step = getattr(program, place.step)
    step.signature = step.signature.append("mood", dspy.OutputField(), str)
    assert first(ask(program, place.inputs, model())["mood"]) == "sure"


@pytest.mark.parametrize("place", places())
def test_an_input_that_nobody_fills_is_refused_before_any_call(place: Place) -> None:
    program, lm = place.make(), model()
    step = getattr(program, place.step)
    filled = list(step.signature.input_fields)
    step.signature = step.signature.append("tone", dspy.InputField(), str)
    with pytest.raises(ConfigError, match=f"'{place.step}' of {type(program).__name__} needs the input 'tone'") as told:
        ask(program, place.inputs, lm)
    assert all(repr(name) in str(told.value) for name in filled)
    assert not lm.history


@pytest.mark.parametrize("place", places())
def test_instructions_of_ones_own_reach_the_prompt(place: Place) -> None:
    program, lm = place.make(), model()
    step = getattr(program, place.step)
    step.signature = signature_for(step.signature, "Reply as a pirate would.")
    ask(program, place.inputs, lm)
    assert any("Reply as a pirate would." in str(entry["messages"]) for entry in lm.history)


@pytest.mark.parametrize("place", places())
def test_a_module_in_the_place_of_any_step_works_and_its_reasoning_comes_through(place: Place) -> None:
    program = place.make()
    setattr(program, place.step, dspy.ChainOfThought(getattr(program, place.step).signature))
    assert first(ask(program, place.inputs, model())["reasoning"]) == "It says so."


@pytest.mark.parametrize("place", places())
def test_what_a_place_fills_and_reads_is_in_the_signature_that_stands_there(place: Place) -> None:
    program = place.make()
    filled, read = (set(side.replace(" ", "").split(",")) for side in program.asks[place.step].split("->"))
    signature = getattr(program, place.step).signature
    assert filled == set(signature.input_fields)
    assert read <= set(signature.output_fields)


class WithMood(dspy.Signature):
    """Answer, and say how sure you are."""

    passages: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()
    mood: str = dspy.OutputField()


def test_a_program_takes_a_signature_or_instructions_for_its_answer() -> None:
    program = CombinedRetrieveRAG(texts, ["Which rivers are there?"], signature=WithMood)
    assert ask(program, {"question": QUESTION}, model())["mood"] == "sure"
    assert TraditionalRAG(texts, signature="Be brief.").answer.signature.instructions == "Be brief."
    assert list(signature_for(AnswerQuestion, "question, passages -> answer, mood").output_fields) == ["answer", "mood"]
    with pytest.raises(ConfigError, match="expected a dspy"):
        TraditionalRAG(texts, signature=dspy.Predict)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="explain=True needs the output 'explanation'"):
        TraditionalRAG(texts, explain=True, signature=WithMood)


def test_an_output_that_is_read_and_missing_is_refused_before_any_call() -> None:
    program, lm = TraditionalRAG(texts, signature="question, passages -> reply"), model()
    with pytest.raises(ConfigError, match="returns no 'answer', which the program reads"):
        ask(program, {"question": QUESTION}, lm)
    assert not lm.history


def test_a_string_in_place_of_a_signature_is_told_as_such() -> None:
    program = TraditionalRAG(texts)
    program.answer.signature = "Be brief."
    with pytest.raises(ConfigError, match="with_instructions"):
        check_steps(program)


def test_a_module_of_ones_own_is_refused_where_it_needs_what_nobody_fills() -> None:
    class Answers(dspy.Module):
        def forward(self, question: str, passages: list[str], tone: str) -> dspy.Prediction:
            raise NotImplementedError

    program = TraditionalRAG(texts)
    program.answer = Answers()  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="needs the input 'tone'"):
        ask(program, {"question": QUESTION}, model())


def test_an_input_with_a_default_needs_nobody() -> None:
    program = TraditionalRAG(texts)
    program.answer.signature = program.answer.signature.append("tone", dspy.InputField(default="dry"), str)
    assert ask(program, {"question": QUESTION}, model())["answer"] == "The sea"


def test_steps_within_steps_are_checked_before_the_first_call() -> None:
    pipeline, speculative = KRAQ(), SpeculativeRAG(texts, Seen(), scorer=KraqScore())  # type: ignore[arg-type]
    for module in (pipeline.ask.generate, speculative.scorer.verify):  # type: ignore[attr-defined]
        module.signature = module.signature.append("tone", dspy.InputField(), str)
    with pytest.raises(ConfigError, match="'generate' of AskQuestion needs the input 'tone'"):
        check_steps(pipeline)
    with pytest.raises(ConfigError, match="'verify' of KraqScore needs the input 'tone'"):
        check_steps(speculative)
