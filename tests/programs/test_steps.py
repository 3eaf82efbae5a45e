"""Every step of every program can be swapped: for a signature, for instructions, for a module."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dspy
import numpy as np
import pytest
from dspy.utils import DummyLM

from kraq_dspy._internal.step import signature_for
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval import BinaryJudge, RubricJudge
from kraq_dspy.programs import (
    K2RAG,
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
    LocalContext,
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
from kraq_dspy.records import FaqEntry
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

    entry = FaqEntry(1, "Where does the river Rhine end?", "In the sea.", "approved")

    def exact(self, question: str) -> None:
        return None

    def nearest(self, question: str, k: int, similarity: float = 0.0) -> list[FaqEntry]:
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
    (lambda: K2RAG(texts, Graph(), Shorten(FirstWords())), {"question": QUESTION}),
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
UNASKED = {("BinaryJudge", "judge_list")}  # for lists alone

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
        for step, _ in program.named_predictors():
            if "." not in step and (name, step) not in UNASKED:
                swapped.append(pytest.param(Place(make, inputs, step), id=f"{name}-{step}"))
    return swapped


def model() -> DummyLM:
    return DummyLM([REPLY] * 40)


def ask(program: Any, inputs: dict[str, Any], lm: DummyLM) -> Any:
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        return program(**inputs)


@pytest.mark.parametrize("place", places())
def test_instructions_of_ones_own_reach_the_prompt(place: Place) -> None:
    program, lm = place.make(), model()
    step = getattr(program, place.step)
    step.signature = signature_for(step.signature, "Reply as a pirate would.")
    ask(program, place.inputs, lm)
    assert any("Reply as a pirate would." in str(entry["messages"]) for entry in lm.history)


@pytest.mark.parametrize("place", places())
def test_a_module_in_the_place_of_any_step_works(place: Place) -> None:
    program, lm = place.make(), model()
    setattr(program, place.step, dspy.ChainOfThought(getattr(program, place.step).signature))
    ask(program, place.inputs, lm)
    assert any("`reasoning`" in str(entry["messages"]) for entry in lm.history)


class WithMood(dspy.Signature):
    """Answer, and say how sure you are."""

    passages: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()
    mood: str = dspy.OutputField()


ANSWERING: list[Callable[..., Any]] = [
    lambda **own: TraditionalRAG(texts, **own),
    lambda **own: CombinedRetrieveRAG(texts, ["Which rivers are there?"], **own),
    lambda **own: QARAG(texts, variant="v", **own),
    lambda **own: NaiveGraphRAG(Graph(), **own),  # type: ignore[arg-type]
    lambda **own: K2RAG(texts, Graph(), Shorten(FirstWords()), **own),
]


@pytest.mark.parametrize("make", ANSWERING)
def test_a_program_takes_a_signature_for_its_answer_and_hands_on_what_that_returns_besides(
    make: Callable[..., Any],
) -> None:
    assert ask(make(signature=WithMood), {"question": QUESTION}, model()).mood == "sure"
    assert make(signature="Be brief.").answer.signature.instructions == "Be brief."


def test_a_chosen_draft_hands_on_what_it_returns_besides() -> None:
    program = SpeculativeRAG(texts, Seen(), k=1, m=1, scorer=VoteScore())  # type: ignore[arg-type]
    program.draft.signature = program.draft.signature.append("mood", dspy.OutputField(), str)
    assert ask(program, {"question": QUESTION}, model()).mood == "sure"


@pytest.mark.parametrize(
    ("signature", "says"),
    [
        (dspy.Predict, "expected a dspy"),
        ("question, passages -> reply", "returns no 'answer', which the program reads; it has 'reply'"),
    ],
)
def test_a_signature_that_does_not_fit_its_place_is_refused_when_the_program_is_made(signature: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        TraditionalRAG(texts, signature=signature)


@pytest.mark.parametrize("make", ANSWERING)
def test_what_is_given_with_the_question_reaches_the_signature(make: Callable[..., Any]) -> None:
    lm = model()
    for_children = WithMood.append("audience", dspy.InputField(), str)
    ask(make(signature=for_children), {"question": QUESTION, "audience": "seven-year-olds"}, lm)
    assert any("seven-year-olds" in str(call["messages"]) for call in lm.history)


def test_drafts_are_written_with_what_is_given_with_the_question() -> None:
    lm = model()
    program = SpeculativeRAG(texts, Seen(), k=1, m=1, scorer=VoteScore())  # type: ignore[arg-type]
    program.draft.signature = program.draft.signature.append("audience", dspy.InputField(), str)
    ask(program, {"question": QUESTION, "audience": "seven-year-olds"}, lm)
    assert any("seven-year-olds" in str(call["messages"]) for call in lm.history)


def test_an_input_that_no_signature_reads_is_refused_before_anything_is_asked() -> None:
    lm = model()
    with pytest.raises(ConfigError, match=r"has no input 'audience'; it has 'passages', 'question'"):
        ask(TraditionalRAG(texts), {"question": QUESTION, "audience": "children"}, lm)
    assert lm.history == []


@pytest.mark.parametrize("make", [*ANSWERING, lambda **own: QARAG(texts, **own)])
def test_an_input_that_the_program_fills_in_itself_is_refused_before_anything_is_asked(
    make: Callable[..., Any],
) -> None:
    lm, program = model(), make(signature=None)
    theirs = "passages" if "passages" in program.answer.signature.input_fields else "pairs"
    with pytest.raises(ConfigError, match=rf"fills in '{theirs}' itself.*With the question it takes no others\."):
        ask(program, {"question": QUESTION, theirs: ["The Rhine is a river."]}, lm)
    assert lm.history == []


def test_the_inputs_that_a_program_takes_with_the_question_are_named() -> None:
    rag = TraditionalRAG(texts, signature=WithMood.append("audience", dspy.InputField(), str))
    with pytest.raises(ConfigError, match="With the question it takes 'audience'"):
        ask(rag, {"question": QUESTION, "audience": "children", "passages": ["The Rhine is a river."]}, model())


def test_an_input_that_was_not_given_is_named_with_the_way_to_give_it() -> None:
    rag = TraditionalRAG(texts, signature=WithMood.append("audience", dspy.InputField(), str))
    with pytest.raises(ConfigError, match=r"needs the input 'audience'.*program\(question=\.\.\., audience=\.\.\.\)"):
        ask(rag, {"question": QUESTION}, model())


def test_a_signature_that_is_set_afterwards_is_checked_too() -> None:
    rag = TraditionalRAG(texts)
    rag.answer.signature = dspy.Signature("question, passages -> reply")
    with pytest.raises(ConfigError, match="returns no 'answer', which the program reads; it has 'reply'"):
        ask(rag, {"question": QUESTION}, model())


def test_an_explanation_needs_its_output() -> None:
    with pytest.raises(ConfigError, match="returns no 'explanation'"):
        TraditionalRAG(texts, explain=True, signature=WithMood)


def test_an_input_with_a_default_needs_nobody_and_the_short_form_is_a_signature() -> None:
    dry = WithMood.append("tone", dspy.InputField(default="dry"), str)
    assert ask(TraditionalRAG(texts, signature=dry), {"question": QUESTION}, model()).answer == "The sea"
    assert list(signature_for(AnswerQuestion, "question, passages -> answer, mood").output_fields) == ["answer", "mood"]
