"""Asks programs for clients: so many at once, as one answer or as it comes, and no longer than somebody listens."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import dspy
from dspy.streaming import StatusMessage, StreamResponse
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request

from kraq_dspy._internal.rag_prediction import as_json
from kraq_dspy.apps.lines import prediction_lines
from kraq_dspy.apps.serve.question_log import AskedLog
from kraq_dspy.apps.serve.refusals import RequestError, as_request_error, body_of
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.apps.serve.watch import RequestRecord
from kraq_dspy.apps.views import Answer, SuggestedQuestion
from kraq_dspy.errors import counted
from kraq_dspy.models.lms.meter import FREE, Answer as MeteredAnswer, Price, TappedJournal, working_on
from kraq_dspy.records import Hit, Usage
from kraq_dspy.workspace.asking import Request as AskedRequest
from kraq_dspy.workspace.choices import ProgramChoice
from kraq_dspy.workspace.not_searched import is_searched
from kraq_dspy.workspace.refusing import is_refusal

logger = logging.getLogger(__name__)

STAGE = "serve"
Event = tuple[str, dict[str, Any]]
"""(name, data) of what a client is sent while an answer is made."""
SILENCE_S = 15
"""After so long without news a stream says that it is alive, so that nobody between here and the client ends it."""
PATIENCE_S = 60.0
"""A client that reads nothing for so long gives its place up."""


class AnswerSlots:
    """Bounds the questions that are answered at the same time, and those that wait for it."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self.most_waiting = waiting
        self.in_use = 0
        self.waiting = 0
        self.free = asyncio.Semaphore(at_once)

    def require_free(self) -> None:
        """Raises RequestError if too many wait already."""
        if self.free.locked() and self.waiting >= self.most_waiting:
            answering = "is being answered" if self.in_use == 1 else "are being answered"
            wait = "waits" if self.waiting == 1 else "wait"
            message = f"{counted(self.in_use, 'question')} {answering} and {self.waiting} {wait}. Try again in 5 s."
            raise RequestError(503, "busy", message, {"Retry-After": "5"})

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A place among those that are answered, once one is free. Raises RequestError as `require_free` does."""
        self.require_free()
        self.waiting += 1
        try:
            await self.free.acquire()
        finally:
            self.waiting -= 1

        self.in_use += 1
        try:
            yield
        finally:
            self.in_use -= 1
            self.free.release()


@dataclass(frozen=True)
class ProgramCall:
    """A question to a program of an index; `choice` says which program with which options.

    `record` notes what became of it. An answer of the FAQ cache goes before the program's if it `may_be_prepared`.
    `log` keeps the question, completed from the conversation.
    """

    served: ServedIndex
    choice: ProgramChoice
    asked: AskedRequest
    slots: AnswerSlots
    record: RequestRecord
    may_be_prepared: bool = False
    log: AskedLog | None = None

    async def prepared(self) -> dspy.Prediction | None:
        if not self.may_be_prepared:
            return None
        return await asyncio.to_thread(self.served.space.prepared, self.asked.question)


class UsageCount:
    """Adds up what the models took for one question, as they answer, and notes it with the request."""

    def __init__(self, prices: Mapping[str, Price], record: RequestRecord) -> None:
        self.usage = Usage()
        self.journal = TappedJournal(self._add)
        self._prices = prices
        self._record = record

    def _add(self, answer: MeteredAnswer) -> None:
        self.usage += answer.usage
        self._record.usage = self.usage
        self._record.cost += self._prices.get(answer.model, FREE).of(answer.usage)


async def ask(call: ProgramCall) -> Answer:
    """The answer with its evidence."""
    count = UsageCount(call.served.prices, call.record)
    async with call.slots.slot():
        with working_on(STAGE, uuid4().hex, count.journal):
            started = time.perf_counter()
            prediction = await call.prepared() or await call.served.space.aask(call.asked)
            return await asyncio.to_thread(_answer_of, call, prediction, count.usage, time.perf_counter() - started)


async def stream(call: ProgramCall) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
    """(event, data): "stage" and "text" as they come, then "answer"; "error" where it fails."""
    count = UsageCount(call.served.prices, call.record)
    try:
        if call.slots.free.locked():
            yield "stage", {"stage": "waiting for a place"}

        async with call.slots.slot():
            with working_on(STAGE, uuid4().hex, count.journal):
                started = time.perf_counter()
                if prepared := await call.prepared():
                    answer = await asyncio.to_thread(_answer_of, call, prepared, count.usage, 0.0)
                    yield "answer", answer.to_json()
                    return

                async with aclosing(call.served.space.astream(call.asked)) as values:
                    async for value in values:
                        if isinstance(value, StatusMessage):
                            yield "stage", {"stage": value.message}
                        elif isinstance(value, StreamResponse):
                            yield "text", {"text": value.chunk}
                        else:
                            seconds = time.perf_counter() - started
                            answer = await asyncio.to_thread(_answer_of, call, value, count.usage, seconds)
                            yield "answer", answer.to_json()
    except Exception as error:  # noqa: BLE001 (the response has begun: the client is told in it)
        yield "error", body_of(as_request_error(error))


def streaming(events: AsyncGenerator[ServerSentEvent, None]) -> EventSourceResponse:
    """The events as they come; ends their task when the client goes away."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventSourceResponse(events, headers=headers, ping=SILENCE_S, sep="\n", send_timeout=PATIENCE_S)


async def in_own_task(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """The events, made in a task of their own: DSPy's streams open cancel scopes, which one task has to close."""
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    async def make() -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    queue.put_nowait(event)
        finally:
            queue.put_nowait(None)

    task = asyncio.create_task(make())
    try:
        while (event := await queue.get()) is not None:
            yield event
        await task
    finally:
        task.cancel()


async def sent(events: AsyncGenerator[Event, None]) -> AsyncGenerator[ServerSentEvent, None]:
    """The events as they go to a client."""
    async with aclosing(in_own_task(events)) as made:
        async for name, data in made:
            yield ServerSentEvent(json.dumps(data), event=name, sep="\n")


async def while_connected(request: Request, work: Coroutine[Any, Any, Any]) -> Any:
    """Return what `work` returns. Cancels it, and returns None, when the client goes away. The body
    must have been read."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.create_task(work), asyncio.create_task(gone())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].result() if tasks[0].done() else None
    finally:
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait(tasks)


def _answer_of(call: ProgramCall, prediction: dspy.Prediction, usage: Usage, seconds: float) -> Answer:
    choice, atlas = call.choice, call.served.atlas
    refused = is_refusal(prediction)
    call.record.answered = True
    call.record.cache = not usage.calls and not refused
    _keep_question(call, prediction, refused=refused)

    timings = {name: float(value) for name, value in choice.seconds(prediction).items() if value}
    return Answer.of(
        prediction,
        question=call.asked.question,
        standalone_question=str(prediction.get("standalone_question") or ""),
        index=call.served.name,
        program=choice.spec.name,
        model=call.served.model_of(choice),
        answerable_score=prediction.get("answerable_score"),
        hits=[atlas.found(hit) for hit in prediction.get("hits") or () if isinstance(hit, Hit)],
        notes=[line.plain for line in prediction_lines(choice, prediction)],
        next_questions=SuggestedQuestion.all_of(prediction.get("next_questions")),
        details={key: as_json(prediction.get(key), hit_in_brief) for key in choice.spec.keys if key in prediction},
        timings={**timings, "wall": timings.get("wall", seconds)},
        usage=as_json(usage),
    )


def _keep_question(call: ProgramCall, prediction: dspy.Prediction, *, refused: bool) -> None:
    """In the log, if there is one: a question, not thanks. An answer is not lost to a full disk."""
    if call.log is None or not is_searched(prediction):
        return
    question = str(prediction.get("standalone_question") or call.asked.question)
    try:
        call.log.note(question, index=call.served.name, refused=refused)
    except OSError as error:
        logger.error("A question is missing in the log of questions: %s", error)


def hit_in_brief(value: Any) -> dict[str, Any] | None:
    """A hit as JSON, whose passage stays its id; None for another record."""
    if not isinstance(value, Hit):
        return None
    return {"chunk_id": value.chunk.id, "score": float(value.score), "query": value.query, "why": value.why}
