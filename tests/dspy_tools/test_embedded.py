"""DSPy's own tools take what programs answer, here with the embedded model: votes, JSON, notebooks, streams, types."""

import asyncio
import json
from enum import Enum
from typing import Any, Literal

import dspy
import pytest
from dspy.streaming import StreamListener, StreamResponse
from dspy.teleprompt import Ensemble

import kraq_dspy as kraq
from kraq_dspy.errors import ModelError
from kraq_dspy.extend import KraqAdapter, answer_listeners

TEXTS = ["Ida keeps the light at Lurr.", "Karl owns the mill, which has 3 wheels & <b>no</b> roof."]
QUESTION = "Who keeps the light?"


def rag(lm: dspy.LM | None = None) -> kraq.programs.CombinedRetrieveRAG:
    program = kraq.programs.CombinedRetrieveRAG(kraq.Corpus.from_texts(TEXTS).retriever, ["Who is there?"], k=2)
    program.set_lm(lm or kraq.make_lm("embedded"))
    return program


class Polite(dspy.Module):
    """A program of one's own with one of the library's inside."""

    def __init__(self) -> None:
        super().__init__()
        self.rag = rag()

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer=f"Well: {self.rag(question=question).answer}")


class Twice(Polite):
    def __init__(self) -> None:
        super().__init__()
        self.other = rag()


def heard(program: dspy.Module, listeners: list[StreamListener], **settings: Any) -> list[str]:
    """The pieces with text; DSPy ends a stream with an empty one."""
    stream = dspy.streamify(program, stream_listeners=listeners, async_streaming=False)
    with dspy.context(**settings):
        return [part.chunk for part in stream(question=QUESTION) if isinstance(part, StreamResponse) and part.chunk]


@pytest.mark.parametrize("settings", [{}, {"adapter": dspy.ChatAdapter()}, {"adapter": KraqAdapter()}])
def test_a_listener_hears_the_whole_answer_in_one_piece(settings: dict[str, Any]) -> None:
    program = rag()
    whole = program(question=QUESTION).answer
    assert heard(program, answer_listeners(program), **settings) == [whole]
    if not isinstance(settings.get("adapter"), KraqAdapter):  # whose name DSPy's own listener does not know
        assert heard(program, [StreamListener("answer")], **settings) == [whole]


def test_json_replies_are_heard_too() -> None:
    said = "".join(heard(rag(), [StreamListener("answer")], adapter=dspy.JSONAdapter()))
    assert "Ida" in said


def test_a_program_inside_another_is_heard_and_of_two_none_is_chosen() -> None:
    polite = Polite()
    [listener] = answer_listeners(polite)
    assert listener.predict is polite.rag.answer
    assert heard(polite, [listener]) == [rag()(question=QUESTION).answer]
    assert heard(polite, [StreamListener("answer")])
    assert answer_listeners(Twice()) == []


def test_a_task_hears_it_as_well() -> None:
    program = rag()

    async def pieces() -> list[str]:
        stream = dspy.streamify(program, stream_listeners=answer_listeners(program), is_async_program=True)
        parts = [part async for part in stream(question=QUESTION)]
        return [part.chunk for part in parts if isinstance(part, StreamResponse) and part.chunk]

    assert asyncio.run(pieces()) == [program(question=QUESTION).answer]


def test_the_majority_is_of_the_answers() -> None:
    karl = dspy.utils.DummyLM([{"answer": "Karl"}])
    programs = [rag(), rag(karl), rag()]
    voted = Ensemble(reduce_fn=dspy.majority).compile(programs)(question=QUESTION)
    assert voted.answer == rag()(question=QUESTION).answer != "Karl"

    predictions = [program(question=QUESTION) for program in (rag(), rag())]
    assert dspy.majority(predictions).answer == predictions[0].answer


def test_a_prediction_is_json_with_passages_and_all() -> None:
    written = json.loads(json.dumps(rag()(question=QUESTION).toDict()))
    assert written["hits"][0]["chunk"]["text"] in TEXTS
    assert written["answer"].startswith("Ida")


def test_a_notebook_shows_a_prediction_and_no_markup_of_a_document() -> None:
    shown = rag()(question="What does Karl own?")._repr_html_()
    assert "<caption>Prediction</caption>" in shown
    assert "&lt;b&gt;no&lt;/b&gt;" in shown
    assert "<b>no" not in shown


def test_dspys_retrieve_reads_a_retriever_of_ours() -> None:
    with dspy.context(rm=kraq.Corpus.from_texts(TEXTS).retriever):
        assert dspy.Retrieve(k=1)(QUESTION).passages == [TEXTS[0]]


class Place(Enum):
    MILL = "mill"
    LIGHT = "light"


@pytest.mark.parametrize(
    ("question", "kind", "value"),
    [
        ("How many wheels does the mill have?", int, 3),
        ("How many wheels does the mill have?", float, 3.0),
        ("How many wheels does the mill have?", list[int], [3]),
        ("What does Ida keep?", Literal["mill", "light"], "light"),
        ("What does Ida keep?", Place, Place.LIGHT),
    ],
)
def test_the_embedded_model_fills_a_field_of_another_type(question: str, kind: Any, value: Any) -> None:
    assert typed(kind)(passages=TEXTS, question=question).answer == value


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (int, r"'answer' \(int\): .* has no number"),
        (bool, r"'answer' \(bool\): .* says neither yes nor no"),
        (Literal["sea", "land"], r"'answer' \(Literal.* names none of sea, land"),
        (dict[str, int], r"'answer' \(dict"),
        (list[dict[str, int]], r"'answer' \(list"),
    ],
)
def test_a_type_that_the_text_does_not_give_is_refused_by_the_name_of_its_field(kind: Any, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        typed(kind)(passages=TEXTS, question=QUESTION)


def typed(kind: Any) -> dspy.Predict:
    signature = dspy.Signature("passages: list[str], question -> answer").with_updated_fields("answer", type_=kind)
    predict = dspy.Predict(signature)
    predict.set_lm(kraq.make_lm("embedded"))
    return predict
