"""Defines the engines under every `dspy.LM` that this library makes.

DSPy hands an engine one request and takes one response. Ours look the request up in the journal of the item at work,
else ask the client or the embedded engine that they wrap, count what it cost, and write the answer down. They retry, so
that the LM above them must not (`num_retries=0`): one loop, one bound.
"""

import asyncio
import dataclasses
import hashlib
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from dspy.lm15 import RETRYABLE_ERRORS, LM15Error, Message, Request, Response, TextDelta, TextPart, response_to_events

from kraq_dspy._internal.both_ways import each, is_blocking, parts_of, result_of, run
from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.dspy_internals import StreamAccumulator, request_to_dict, response_from_dict, response_to_dict
from kraq_dspy.embedded_model import embedded_engine
from kraq_dspy.models.lms.envelope import opened
from kraq_dspy.models.lms.from_threads import FromThreads
from kraq_dspy.models.lms.local_models import GGUF, TRANSFORMERS
from kraq_dspy.models.lms.meter import Call, Item, Meter, current_item
from kraq_dspy.models.lms.retry import Backoff, ServerHealth, clearer, unreachable
from kraq_dspy.models.lms.transport import route_of
from kraq_dspy.records import Usage
from kraq_dspy.settings import EMBEDDED, RoleSettings

logger = logging.getLogger(__name__)

_NO_SYSTEM_ROLE = re.compile(
    r"system (?:role|message|prompt)s?\b.{0,40}\b(?:not supported|unsupported|not allowed)"
    r"|(?:not support|no).{0,20}\bsystem (?:role|message|prompt)"
    r"|roles must alternate user/assistant",
    re.IGNORECASE,
)
"""What servers pass on of templates, as Gemma's and the first Mistral's, that take no system message."""
FIELD_MARK, JSON_KEY = re.compile(r"(\[\[ ## \w{1,100} ## \]\])"), re.compile(r"(\"\w{1,100}\":)")
"""What stands before the value of a field in a reply: in DSPy's chat format, and in JSON."""
SUPPORTED_PARAMS = frozenset({"temperature", "max_tokens", "top_p", "stop", "seed", "logprobs", "top_logprobs"})


class CallLedger:
    """What the sync and the async engine of one model share: its settings, its server's health and the meter."""

    def __init__(self, settings: RoleSettings, where: str, meter: Meter, backoff: Backoff | None = None) -> None:
        self.settings = settings
        self.where = where
        self.meter = meter
        self.backoff = backoff or Backoff(retries=settings.retries)
        self.health = ServerHealth(where)
        self.takes_system_role = True  # until the server says otherwise

    def open(self, request: Request) -> "_JournalledCall":
        """The request as an entry of the item at work, with the answer if the item's journal has it."""
        item = current_item.get()
        if item is None or item.journal is None:
            return _JournalledCall(item)

        body = json.dumps([self.settings.api_base, request_to_dict(request)], sort_keys=True, ensure_ascii=False)
        base = hashlib.blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        turn = item.turn(base)
        key = f"{base}-{turn}" if turn else base
        stored = item.journal.recall(item.stage, item.item_id, key)
        if stored is None:
            return _JournalledCall(item, key)
        self.meter.count_replay()
        return _JournalledCall(item, key, response_from_dict(json.loads(stored)))

    @contextmanager
    def paying(self, entry: "_JournalledCall", request: Request) -> Iterator[Call]:
        stage = entry.item.stage if entry.item else ""
        with self.meter.call(stage, self.settings.model, _estimated_tokens(request)) as call:
            yield call

    def settle(self, entry: "_JournalledCall", call: Call, request: Request, response: Response) -> Response:
        """Count the answer and write it down."""
        self.health.answered()
        response = opened(response, request)
        call.usage = _usage(request, response)
        item = entry.item
        if item is not None and item.journal is not None:
            stored = json.dumps(response_to_dict(response), ensure_ascii=False)
            item.journal.remember(
                item.stage, item.item_id, entry.key, stored, model=self.settings.model, usage=call.usage
            )
        return response

    def wait_after(self, error: LM15Error, attempt: int) -> float:
        """Seconds until the next attempt. Raises the error, clearer, when there is none."""
        worth_it = isinstance(error, RETRYABLE_ERRORS)
        wait = self.backoff.wait(attempt, error.retry_after) if worth_it else None
        if unreachable(error):
            self.health.failed(str(error) or type(error).__name__, giving_up=wait is None)
        else:
            self.health.answered()

        if wait is None:
            raise self.final(error) from error
        self.meter.count_retry()
        logger.info("%s: %s; asking again in %.1f s", self.settings.model, error, wait)
        return wait

    def as_taken(self, request: Request) -> Request:
        """The request; for a model whose template takes no system message, that stands before the user's words."""
        return request if self.takes_system_role else without_system(request)

    def learn_from(self, error: LM15Error, sent: Request) -> bool:
        """Whether the error says that the model takes no system message, of a request that was sent with one."""
        is_refused = bool(sent.system) and bool(_NO_SYSTEM_ROLE.search(str(error)))
        if is_refused and self.takes_system_role:
            self.takes_system_role = False
            logger.info("%s takes no system message; it is put before the user's words", self.settings.model)
        return is_refused

    def final(self, error: LM15Error) -> Exception:
        """The error as callers meet it."""
        return clearer(error, self.settings.model, self.where)


@dataclass(frozen=True, slots=True)
class _JournalledCall:
    item: Item | None
    key: str = ""
    answer: Response | None = None


class _JournallingEngine(SharedByCopies):
    """What both engines of a model are: they differ in who drives the one body (`_internal.both_ways`).

    Saved as its role's settings, which hold no secret, and made anew from them.
    """

    supports_function_calling = False
    supports_reasoning = False
    supports_response_schema = False
    supported_params = SUPPORTED_PARAMS

    def __init__(self, inner: Any, ledger: CallLedger) -> None:
        """`inner` makes one attempt at one request and raises lm15 errors: `complete` and, where it can, `stream`."""
        self.inner = inner
        self.ledger = ledger

    def dump_state(self) -> dict[str, Any]:
        return dataclasses.asdict(self.ledger.settings)

    async def _complete(self, entry: _JournalledCall, request: Request) -> Response:
        if entry.answer is not None:
            return opened(entry.answer, request)
        with self.ledger.paying(entry, request) as call:
            [response] = [response async for response in self._asked(request, streamed=False)]
            return self.ledger.settle(entry, call, request, response)

    async def _stream(self, request: Request) -> AsyncGenerator[Any, None]:
        entry = self.ledger.open(request)
        if entry.answer is not None or not hasattr(self.inner, "stream"):
            for event in response_to_events(await self._complete(entry, request)):
                for part in _by_field(event):
                    yield part
            return

        with self.ledger.paying(entry, request) as call:
            written = StreamAccumulator(request)
            async for event in self._asked(request, streamed=True):
                if event.type == "start":  # a server may have a name of its own for the model
                    event = dataclasses.replace(event, model=request.model)
                written.push(event)
                if event.type == "end":
                    self.ledger.settle(entry, call, request, written.response())
                yield event

    async def _asked(self, request: Request, *, streamed: bool) -> AsyncGenerator[Any, None]:
        """The parts of an answer, from the first attempt that gives one.

        Once a part went out it cannot be taken back: from there on a fault is final.
        """
        attempt = 0
        while True:
            self.ledger.health.check()
            begun, sent = False, self.ledger.as_taken(request)
            try:
                async for part in self._attempt(sent, streamed=streamed):
                    begun = True
                    yield part
                return
            except LM15Error as error:
                if begun:
                    raise self.ledger.final(error) from error
                if self.ledger.learn_from(error, sent):
                    continue
                wait_s = self.ledger.wait_after(error, attempt)
                attempt += 1
                if await is_blocking():
                    time.sleep(wait_s)
                else:
                    await asyncio.sleep(wait_s)

    async def _attempt(self, request: Request, *, streamed: bool) -> AsyncGenerator[Any, None]:
        """The events of a stream, or the response as the only part. Tasks are bounded by places, threads by their
        number."""
        item = current_item.get()
        place = nullcontext if item is None or await is_blocking() else item.place
        async with place():
            if streamed:
                async for event in parts_of(self.inner.stream(request)):
                    yield event
            else:
                yield await result_of(self.inner.complete(request))


def _by_field(event: Any) -> Iterator[Any]:
    """The event of a whole reply in pieces that end where a field begins or ends.

    A listener of DSPy's takes a piece that holds a field from its beginning to its end for an answer of the cache, and
    is silent: of a reply that comes at once, it would never hear the field that it listens to.
    """
    text = event.delta.text if event.type == "delta" and isinstance(event.delta, TextDelta) else ""
    marks = JSON_KEY if text.lstrip().startswith("{") else FIELD_MARK
    pieces = [piece for piece in marks.split(text) if piece]
    if len(pieces) < 2:
        yield event
        return
    for piece in pieces:
        yield dataclasses.replace(event, delta=dataclasses.replace(event.delta, text=piece))


class Engine(_JournallingEngine):
    """A journalling engine for `dspy.LM(engine=...)`. Safe for threads as far as `inner` is."""

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> "Engine":
        return engines(RoleSettings(**state))[0]

    def complete(self, request: Request) -> Response:
        return run(self._complete(self.ledger.open(request), request))

    def stream(self, request: Request) -> Iterator[Any]:
        """Events as the model writes them; the whole answer as one stream if it is known, or `inner` cannot stream.

        An answer is kept and counted once it is complete.
        """
        return each(self._stream(request))

    def close(self) -> None:
        close = getattr(self.inner, "close", None)
        if close is not None:
            close()


class AsyncEngine(_JournallingEngine):
    """A journalling engine for `dspy.LM(async_engine=...)`. May serve several event loops, one
    after the other or at once."""

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> "AsyncEngine":
        return engines(RoleSettings(**state))[1]

    async def complete(self, request: Request) -> Response:
        return await self._complete(self.ledger.open(request), request)

    def stream(self, request: Request) -> AsyncIterator[Any]:
        """Do as `Engine.stream` does."""
        return self._stream(request)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        close = getattr(self.inner, "aclose", None)
        if close is not None:
            await close()


@dataclass(frozen=True)
class InThread:
    """A sync engine for async callers: the event loop goes on while it works."""

    inner: Any

    async def complete(self, request: Request) -> Response:
        return await asyncio.to_thread(self.inner.complete, request)


def engines(
    settings: RoleSettings, *, embedder: Any = None, meter: Meter | None = None, backoff: Backoff | None = None
) -> tuple[Engine, AsyncEngine]:
    """The pair for a model. Raises ModelError (see `transport.route_of`)."""
    where = "this process"
    inner: Any
    awaited: Any
    if settings.model == EMBEDDED:
        where, inner = "the embedded model", embedded_engine(embedder)
        awaited = InThread(inner)
    elif settings.model.startswith(TRANSFORMERS):
        from kraq_dspy.models.lms.engines.transformers_engine import AsyncTransformersEngine, engine_of

        inner = engine_of(settings)
        awaited = AsyncTransformersEngine(inner)
    elif settings.model.startswith(GGUF):
        from kraq_dspy.models.lms.engines.llama_cpp import llama_engine

        awaited = llama_engine(settings)
        inner = FromThreads(awaited)
    else:
        where, awaited = route_of(settings)
        inner = FromThreads(awaited)
    ledger = CallLedger(settings, where, meter or Meter(), backoff)
    return Engine(inner, ledger), AsyncEngine(awaited, ledger)


def without_system(request: Request) -> Request:
    """The same request with what the system says before the first thing that the user says."""
    if not isinstance(request.system, str) or not request.system:
        return request

    first, *others = request.messages
    system_part = TextPart(text=f"{request.system}\n\n")
    if first.role != "user":
        return dataclasses.replace(
            request, system=None, messages=(Message(role="user", parts=(system_part,)), first, *others)
        )

    parts = (system_part, *first.parts)
    if isinstance(first.parts[0], TextPart):  # some servers take a single text alone
        parts = (dataclasses.replace(first.parts[0], text=system_part.text + first.parts[0].text), *first.parts[1:])
    return dataclasses.replace(request, system=None, messages=(dataclasses.replace(first, parts=parts), *others))


def _estimated_tokens(request: Request) -> int:
    """A quarter of the characters: what cl100k makes of English, within about a tenth."""
    system = request.system if isinstance(request.system, str) else ""
    return (len(system) + sum(len(message.text or "") for message in request.messages)) // 4


def _usage(request: Request, response: Response) -> Usage:
    """Count the usage as the server reports it; estimated if it does not."""
    prompt, completion = response.usage.input_tokens, response.usage.output_tokens
    return Usage(
        calls=1,
        prompt_tokens=_estimated_tokens(request) if prompt is None else prompt,
        completion_tokens=len(response.message.text or "") // 4 if completion is None else completion,
        cached_tokens=response.usage.cache_read_tokens or 0,
    )
