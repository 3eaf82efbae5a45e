"""Asks programs for clients: so many at once, as one answer or as it comes, and no longer than somebody listens."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request
from starlette.types import Receive

from kraq_dspy.apps.lines import prediction_lines
from kraq_dspy.apps.serve.endpoints import as_request_error, body_of, busy
from kraq_dspy.apps.serve.listing import passage_json
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.models.lms.meter import TappedJournal, working_on
from kraq_dspy.records import Hit, Usage
from kraq_dspy.workspace.choices import ProgramChoice

if TYPE_CHECKING:
    import dspy

STAGE = "serve"
SILENCE_S = 15.0
"""After so long without news a stream says that it is alive, so that nobody between here and the client ends it."""
UNREAD = 64
"""Events that wait for a client that reads slowly; then the program waits too."""
PATIENCE_S = 60.0
"""A client that reads nothing for so long gives its place up."""
CANCEL_S = 1.0
"""A question whose client has gone has so long to end; then its place is free all the same."""


class AnswerSlots:
    """Bounds the questions that are answered at the same time, and those that wait for it.

    `spent` is called with the name of an index and what a model took for it.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self.at_once = at_once
        self.most_waiting = waiting
        self.in_use = 0
        self.waiting = 0
        self.spent: Callable[[str, Usage], None] = lambda index, usage: None
        self.free = asyncio.Semaphore(at_once)

    def require_free(self) -> None:
        """Raises RequestError where too many wait already."""
        if self.free.locked() and self.waiting >= self.most_waiting:
            raise busy(f"{self.in_use} questions are being answered and {self.waiting} wait.", 5)


class Slot:
    """A place among those that are answered, held within `async with`; `leave` gives it up before that ends."""

    def __init__(self, slots: AnswerSlots) -> None:
        self.slots = slots
        self._is_held = False

    async def __aenter__(self) -> None:
        self.slots.require_free()
        self.slots.waiting += 1
        try:
            await self.slots.free.acquire()
        finally:
            self.slots.waiting -= 1
        self._is_held = True
        self.slots.in_use += 1

    async def __aexit__(self, *exc_info: object) -> None:
        self.leave()

    def leave(self) -> None:
        if self._is_held:
            self._is_held = False
            self.slots.in_use -= 1
            self.slots.free.release()


@dataclass(frozen=True)
class ProgramCall:
    """A question to a program of an index; `choice` says which program with which options. Where it `may_be_prepared`,
    an answer of the catalogue goes before the program's."""

    served: ServedIndex
    choice: ProgramChoice
    program: "dspy.Module"
    question: str
    slot: Slot
    may_be_prepared: bool = False

    async def prepared(self) -> "dspy.Prediction | None":
        if not self.may_be_prepared:
            return None
        return await asyncio.to_thread(self.served.space.prepared, self.question)


class UsageCount:
    """Adds up what the models took for one question."""

    def __init__(self, call: ProgramCall) -> None:
        self.usage = Usage()
        self._call = call
        self.journal = TappedJournal(lambda answer: self._add(answer.usage))

    def _add(self, usage: Usage) -> None:
        self.usage += usage
        self._call.slot.slots.spent(self._call.served.name, usage)


async def ask(call: ProgramCall) -> dict[str, Any]:
    """The answer with its evidence, as JSON."""
    count = UsageCount(call)
    async with call.slot:
        with working_on(STAGE, uuid4().hex, count.journal):
            started = time.perf_counter()
            prediction = await call.prepared() or await call.served.space.aask(call.question, call.program)
            return await asyncio.to_thread(_answer_json, call, prediction, count.usage, time.perf_counter() - started)


async def stream(call: ProgramCall) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
    """(event, data): "stage" and "text" as they come, then "answer"; "error" where it fails."""
    from dspy.streaming import StatusMessage, StreamResponse

    count, slots = UsageCount(call), call.slot.slots
    try:
        if slots.waiting or slots.in_use >= slots.at_once:
            yield "stage", {"stage": "waiting for a place"}
        async with call.slot:
            with working_on(STAGE, uuid4().hex, count.journal):
                started = time.perf_counter()
                if prepared := await call.prepared():
                    yield "answer", await asyncio.to_thread(_answer_json, call, prepared, count.usage, 0.0)
                    return
                async with aclosing(call.served.space.astream(call.question, call.program)) as values:
                    async for value in values:
                        if isinstance(value, StatusMessage):
                            yield "stage", {"stage": value.message}
                        elif isinstance(value, StreamResponse):
                            yield "text", {"text": value.chunk}
                        else:
                            seconds = time.perf_counter() - started
                            answer = await asyncio.to_thread(_answer_json, call, value, count.usage, seconds)
                            yield "answer", answer
    except Exception as error:  # noqa: BLE001 (the response has begun: the client is told in it)
        yield "error", body_of(as_request_error(error))


async def as_it_comes(events: AsyncGenerator[bytes, None], slot: Slot) -> AsyncIterator[bytes]:
    """The events, worked out in one task, with a word where there is none for long. Closed, it ends that task."""
    queue: asyncio.Queue[bytes | None] = asyncio.Queue(UNREAD)

    async def work() -> None:
        async with aclosing(events):
            async for event in events:
                await asyncio.wait_for(queue.put(event), PATIENCE_S)
        await queue.put(None)

    task = asyncio.create_task(work())
    try:
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), SILENCE_S)
            except TimeoutError:
                event = b": still at work\n\n"
            if event is None or (task.done() and queue.empty()):
                return
            yield event
    finally:
        await _ended(task, slot)


def server_sent(event: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()


async def while_connected(request: Request, work: Coroutine[Any, Any, Any], slot: Slot) -> Any:
    """What `work` returns. Cancels it, and returns None, when the client goes away. The body must have been read."""
    task = asyncio.create_task(work)
    gone = asyncio.ensure_future(_gone(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        gone.cancel()
        await _ended(task, slot)


async def _ended(task: asyncio.Task[Any], slot: Slot) -> None:
    """The slot is free then, also where the task takes no notice of being cancelled."""
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=CANCEL_S)
    finally:
        slot.leave()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _answer_json(call: ProgramCall, prediction: "dspy.Prediction", usage: Usage, seconds: float) -> dict[str, Any]:
    choice, atlas = call.choice, call.served.atlas
    timings = {name: float(value) for name, value in choice.seconds(prediction).items() if value}
    return {
        "question": call.question,
        "index": call.served.name,
        "program": choice.spec.name,
        "model": call.served.model_of(choice),
        "answer": str(prediction.get("answer") or ""),
        "hits": [
            {**passage_json(hit.chunk, atlas), "score": float(hit.score), "query": hit.query, "why": hit.why}
            for hit in prediction.get("hits") or ()
            if isinstance(hit, Hit)
        ],
        "notes": [line.plain for line in prediction_lines(choice, prediction)],
        "next_questions": [each.to_dict() for each in prediction.get("next_questions") or ()],
        "details": {key: plain(prediction.get(key)) for key in choice.spec.keys if key in prediction},
        "timings": {**timings, "wall": timings.get("wall", seconds)},
        "usage": plain(usage),
    }


def plain(value: Any) -> Any:
    """Records, tuples, mappings and numbers of numpy as JSON values. Passages stay their ids."""
    if isinstance(value, Hit):
        return {"chunk_id": value.chunk.id, "score": float(value.score), "query": value.query, "why": value.why}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return str(value)


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """Counts for Prometheus. Labels are routes, programs and states, never what a client sent: their number is
    bounded."""

    def __init__(self, slots: AnswerSlots) -> None:
        own: dict[str, Any] = {"registry": CollectorRegistry()}
        self.registry = own["registry"]
        self.requests = Counter("kraq_requests", "Requests answered.", ("method", "route", "status"), **own)
        self.seconds = Histogram(
            "kraq_request_seconds", "Time to the end of an answer.", ("route",), buckets=_SECONDS, **own
        )
        self.questions = Counter("kraq_questions", "Questions by outcome.", ("program", "outcome"), **own)
        calls = Counter("kraq_model_calls", "Answered calls of models.", ("index",), **own)
        tokens = Counter("kraq_model_tokens", "Tokens of models.", ("index", "kind"), **own)
        in_use = Gauge("kraq_questions_in_progress", "Questions being answered.", **own)
        waiting = Gauge("kraq_questions_waiting", "Questions that wait for a place.", **own)
        in_use.set_function(lambda: slots.in_use)
        waiting.set_function(lambda: slots.waiting)

        def count_usage(index: str, usage: Usage) -> None:
            calls.labels(index).inc(usage.calls)
            tokens.labels(index, "prompt").inc(usage.prompt_tokens)
            tokens.labels(index, "completion").inc(usage.completion_tokens)

        slots.spent = count_usage

    def text(self) -> bytes:
        return generate_latest(self.registry)
