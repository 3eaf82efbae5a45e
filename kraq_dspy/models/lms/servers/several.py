"""Spreads the calls of a role over several servers of one model: the least busy is asked, a silent one rests."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dspy.lm15 import LM15Error, Request, Response

from kraq_dspy._internal.both_ways import each, run
from kraq_dspy.models.lms.servers.retry import unreachable

logger = logging.getLogger(__name__)

_REST_S, _LONGEST_REST_S = 1.0, 30.0


@dataclass
class Server:
    """One of several: `inner` makes an attempt at a request and raises lm15 errors."""

    where: str
    inner: Any
    in_flight: int = 0
    rest_s: float = 0.0  # 0 where the last call was answered
    rests_until: float = 0.0

    def is_awake(self, now: float) -> bool:
        """Whether it answers, as far as is known. After a rest one call is let through to see."""
        return not self.rest_s or (now >= self.rests_until and not self.in_flight)


class ServerChoice:
    """Which server is asked next. Safe for threads.

    One that gives no answer rests a second, and twice as long each time that it gives none again, up to half a minute.
    """

    def __init__(self, servers: Sequence[tuple[str, Any]], clock: Callable[[], float] = time.monotonic) -> None:
        """Each with its address."""
        self.servers = [Server(where, inner) for where, inner in servers]
        self._clock = clock
        self._lock = threading.Lock()

    @contextmanager
    def least_busy(self, untried: list[Server]) -> Iterator[Server]:
        """The one with the fewest calls in flight, taken out of `untried`; those that rest come last."""
        with self._lock:
            now = self._clock()
            server = min(untried, key=lambda server: (not server.is_awake(now), server.in_flight))
            untried.remove(server)
            server.in_flight += 1
        try:
            yield server
        finally:
            with self._lock:
                server.in_flight -= 1

    def answered(self, server: Server) -> None:
        if server.rest_s:
            logger.warning("%s answers again.", server.where)
        server.rest_s = 0.0

    def failed(self, server: Server) -> None:
        """Calls that fail together count as one."""
        with self._lock:
            now = self._clock()
            if server.rest_s and now < server.rests_until:
                return
            level = logging.INFO if server.rest_s else logging.WARNING
            server.rest_s = min(2 * server.rest_s or _REST_S, _LONGEST_REST_S)
            server.rests_until = now + server.rest_s
        logger.log(level, "%s does not answer; the others go on, and it is tried again now and then.", server.where)


class _Several:
    """What both engines over several servers are: they differ in how they ask one."""

    def __init__(self, choice: ServerChoice) -> None:
        self.choice = choice

    async def _parts(self, request: Request, *, streamed: bool) -> AsyncGenerator[Any, None]:
        """The response as the only part, or the events of a stream, from the first server that answers.

        Raises the error of the last one where none does, and at once what is an answer: a refusal, a full queue.
        """
        untried = list(self.choice.servers)
        while untried:
            with self.choice.least_busy(untried) as server:
                begun = False
                try:
                    async for part in self._attempt(server.inner, request, streamed=streamed):
                        begun = True
                        yield part
                except LM15Error as error:
                    if not unreachable(error):
                        self.choice.answered(server)
                        raise
                    self.choice.failed(server)
                    if begun or not untried:
                        raise
                else:
                    self.choice.answered(server)
                    return

    async def _completed(self, request: Request) -> Response:
        [response] = [part async for part in self._parts(request, streamed=False)]
        return response

    def _attempt(self, inner: Any, request: Request, *, streamed: bool) -> AsyncGenerator[Any, None]:
        raise NotImplementedError


class SeveralServers(_Several):
    """The inner engine of a role with several addresses."""

    def complete(self, request: Request) -> Response:
        return run(self._completed(request))

    def stream(self, request: Request) -> Iterator[Any]:
        return each(self._parts(request, streamed=True))

    def close(self) -> None:
        for server in self.choice.servers:
            if hasattr(server.inner, "close"):
                server.inner.close()

    async def _attempt(self, inner: Any, request: Request, *, streamed: bool) -> AsyncGenerator[Any, None]:
        if streamed:
            for event in inner.stream(request):
                yield event
        else:
            yield inner.complete(request)


class AsyncSeveralServers(_Several):
    """The same for asynchronous callers."""

    async def complete(self, request: Request) -> Response:
        return await self._completed(request)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        async for event in self._parts(request, streamed=True):
            yield event

    async def aclose(self) -> None:
        await asyncio.gather(*(server.inner.aclose() for server in self.choice.servers))

    async def _attempt(self, inner: Any, request: Request, *, streamed: bool) -> AsyncGenerator[Any, None]:
        if streamed:
            async for event in inner.stream(request):
                yield event
        else:
            yield await inner.complete(request)
