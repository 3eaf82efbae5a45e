"""Answers stream as they are written, with a message for each stage, through DSPy's own `streamify`."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from dspy.lm15 import Request, Response, StreamDeltaEvent, StreamEndEvent, StreamStartEvent, TextDelta, Usage
from dspy.streaming import StatusMessage, StreamListener, StreamResponse

from kraq_dspy._internal.clock import AnswerListener
from kraq_dspy.extend import Backoff, KraqAdapter, KraqLM, Meter, answer_listeners, blocking
from kraq_dspy.indexing import build_index
from kraq_dspy.models.lms.engines.engine import AsyncEngine, CallLedger, Engine
from kraq_dspy.models.lms.kraq_lm import adopted
from kraq_dspy.models.lms.meter import working_on
from kraq_dspy.ports import Vectors
from kraq_dspy.programs import K2RAG, Scorer, SpeculativeRAG, TraditionalRAG
from kraq_dspy.programs.speculative.scoring import Score
from kraq_dspy.records import Document, Usage as Paid
from kraq_dspy.settings import RoleSettings
from kraq_dspy.workspace import Workspace
from tests.models.lms.conftest import MemoryJournal

PIECES = ["[[ ##", " answer", " ## ]]\n", "The Rhine", " flows", " to the", " sea."]
END = ["\n\n[[ ## ", "completed ## ]]"]
ANSWER = "The Rhine flows to the sea."


class Writing:
    """An inner engine that streams `pieces` one by one."""

    def __init__(self, pieces: list[str], faults: int = 0) -> None:
        self.pieces = pieces
        self.faults = faults
        self.streams = 0

    def complete(self, request: Request) -> Response:
        raise AssertionError("the whole answer was asked for")

    def stream(self, request: Request) -> Iterator[Any]:
        self.streams += 1
        if self.faults:
            self.faults -= 1
            raise dspy.lm15.ServerError("busy", status=503)
        yield StreamStartEvent(id="1", model="as the server calls it")
        for piece in self.pieces:
            yield StreamDeltaEvent(delta=TextDelta(text=piece, part_index=0))
        yield StreamEndEvent(finish_reason="stop", usage=Usage(input_tokens=9, output_tokens=5, total_tokens=14))


class AsyncWriting(Writing):
    async def complete(self, request: Request) -> Response:  # type: ignore[override]
        raise AssertionError("the whole answer was asked for")

    async def stream(self, request: Request) -> AsyncIterator[Any]:  # type: ignore[override]
        for event in super().stream(request):
            await asyncio.sleep(0)
            yield event


def model(quick: Backoff, pieces: list[str] | None = None, **options: Any) -> KraqLM:
    pieces = [*PIECES, *END] if pieces is None else pieces
    ledger = CallLedger(RoleSettings(model="some/model"), "nowhere", Meter(), quick)
    return KraqLM(
        "some/model", cache=False, num_retries=0,
        engine=Engine(Writing(pieces, **options), ledger),
        async_engine=AsyncEngine(AsyncWriting(pieces, **options), ledger),
    )  # fmt: skip


def retrieve(question: str) -> list[str]:
    return ["The Rhine is a river.", "It flows to the sea.", "Rivers end there."]


def streamed(program: dspy.Module, lm: dspy.BaseLM, *, is_async: bool = False, **settings: Any) -> list[Any]:
    listener = AnswerListener()
    stream = dspy.streamify(program, stream_listeners=[listener], async_streaming=False, is_async_program=is_async)
    with dspy.context(lm=lm, **settings):
        return list(stream(question="Where does the Rhine flow?"))


def text(values: list[Any]) -> str:
    return "".join(value.chunk for value in values if isinstance(value, StreamResponse))


def stages(values: list[Any]) -> list[str]:
    return [value.message for value in values if isinstance(value, StatusMessage)]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("adapter", [None, KraqAdapter(), dspy.ChatAdapter()])
def test_the_answer_comes_in_pieces_after_a_message_for_each_stage(
    quick: Backoff, adapter: dspy.Adapter | None, is_async: bool
) -> None:
    values = streamed(TraditionalRAG(retrieve), model(quick), is_async=is_async, adapter=adapter)
    pieces = [value for value in values if isinstance(value, StreamResponse)]
    assert [piece.chunk for piece in pieces if piece.chunk] == PIECES[3:]  # one for each that the model writes
    assert text(values) == values[-1].answer == ANSWER
    assert stages(values) == ["retrieving", "answering"]
    assert isinstance(values[0], StatusMessage)


def test_a_streamed_answer_is_counted_once_under_the_name_that_was_asked_for(
    quick: Backoff, journal: MemoryJournal
) -> None:
    lm = model(quick)
    with working_on("ask", "item", journal):
        streamed(TraditionalRAG(retrieve), lm)
    assert lm.engine.ledger.meter.usage() == {("ask", "some/model"): Paid(1, 9, 5)}
    assert journal.paid == [Paid(1, 9, 5)]


def test_an_answer_of_the_journal_comes_with_the_prediction_and_is_not_paid_again(
    quick: Backoff, journal: MemoryJournal
) -> None:
    lm = model(quick)
    for _ in range(2):
        with working_on("ask", "item", journal):
            values = streamed(TraditionalRAG(retrieve), lm)
    assert values[-1].answer == ANSWER
    assert lm.engine.inner.streams == 1


def test_a_reply_without_its_end_mark_streams_to_its_end(quick: Backoff) -> None:
    values = streamed(TraditionalRAG(retrieve), model(quick, PIECES))
    assert text(values) == values[-1].answer == ANSWER


def test_a_busy_server_is_asked_again_before_anything_was_shown(quick: Backoff) -> None:
    values = streamed(TraditionalRAG(retrieve), model(quick, faults=2))
    assert text(values) == ANSWER


@pytest.mark.parametrize("is_async", [False, True])
def test_a_streamed_reply_without_its_marker_is_the_answer_as_it_stands(quick: Backoff, is_async: bool) -> None:
    """SmolLM2 answers so."""
    lm = model(quick, ["To the ", "North ", "Sea."])
    values = streamed(TraditionalRAG(retrieve), lm, is_async=is_async, adapter=KraqAdapter())
    assert values[-1].answer == "To the North Sea."


def test_two_streams_at_once_do_not_mix_and_a_listener_serves_a_second_call(quick: Backoff) -> None:
    async def told(answer: str) -> list[str]:
        program = TraditionalRAG(retrieve)
        stream = dspy.streamify(program, stream_listeners=answer_listeners(program), is_async_program=True)
        lm = model(quick, [*PIECES[:3], *answer, *END])
        answers = []
        for _ in range(2):
            with dspy.context(lm=lm):
                answers.append(text([value async for value in stream(question="Which?")]))
        return answers

    async def both() -> list[list[str]]:
        return list(await asyncio.gather(told("abcdefgh"), told("ijklmnop")))

    assert asyncio.run(both()) == [["abcdefgh"] * 2, ["ijklmnop"] * 2]


def test_a_model_of_somebody_else_streams_through_ours(quick: Backoff) -> None:
    inner = Writing([*PIECES, *END])
    lm = adopted(dspy.LM("theirs/model", engine=inner, cache=False), Meter())
    program = TraditionalRAG(retrieve)
    values = streamed(program, lm)
    assert len([value for value in values if isinstance(value, StreamResponse)]) >= 3
    assert text(values) == values[-1].answer == ANSWER


class OneAxis:
    name, dimension = "one axis", 2

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        return np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]][: len(passages)], np.float32)


class LastIsBest(Scorer):
    name, needs_logprobs = "last is best", False

    async def aforward(self, question: str, drafts: list[Any]) -> list[Score]:
        return [Score(float(draft.number), {}) for draft in drafts]

    forward = blocking(aforward)


@pytest.mark.parametrize("is_async", [False, True])
def test_drafts_are_announced_one_by_one_in_both_forms(is_async: bool) -> None:
    program = SpeculativeRAG(retrieve, OneAxis(), n=3, k=2, m=2, scorer=LastIsBest())
    lm = dspy.utils.DummyLM([{"rationale": "r", "response": "to the sea"}] * 2)
    stream = dspy.streamify(program, async_streaming=False, is_async_program=is_async)
    with dspy.context(lm=lm):
        values = list(stream(question="Where?"))
    messages = stages(values)
    assert messages[0] == "retrieving"
    assert set(messages[1:3]) == {"drafting 1 of 2", "drafting 2 of 2"}
    assert values[-1].answer == "to the sea"
    assert answer_listeners(program) == []


def test_of_two_steps_that_write_an_answer_the_last_is_listened_to() -> None:
    program = K2RAG(retrieve)
    [listener] = answer_listeners(program)
    assert listener.predict is program.answer
    with pytest.raises(ValueError, match="answer is not unique"):
        dspy.streamify(program, stream_listeners=[AnswerListener()])


def test_nothing_is_announced_where_nobody_listens(quick: Backoff) -> None:
    with dspy.context(lm=dspy.utils.DummyLM([{"answer": "x"}])):
        assert TraditionalRAG(retrieve)(question="Where?").answer == "x"


@pytest.mark.parametrize("role", [True, False])
def test_a_plain_listener_of_dspys_own_hears_a_program_of_a_workspace(
    tmp_path: Path, quick: Backoff, role: bool
) -> None:
    build_index([Document("rhine", "Rhine", "The Rhine flows to the sea.")], tmp_path / "rhine.kraq")
    lm = model(quick)
    with Workspace.open(tmp_path / "rhine.kraq", lm={"answerer": lm} if role else None) as space:
        rag = space.program("traditional")
        with dspy.context(**({} if role else {"lm": lm})):
            stream = dspy.streamify(rag, stream_listeners=[StreamListener("answer")], async_streaming=False)
            parts = list(stream(question="Where does the Rhine flow?"))

    assert "".join(part.chunk for part in parts if isinstance(part, StreamResponse)).strip() == ANSWER
