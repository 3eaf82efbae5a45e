"""Lets threads ask a client that lives in an event loop: one loop for the process, in a thread of its own.

So a client is written once, for event loops, and callers without one share its connections.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import suppress
from typing import Any, TypeVar

from dspy.lm15 import Request, Response

from kraq_dspy._internal.concurrency import called_once

Result = TypeVar("Result")


@called_once
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """Start the event loop of this process: a forked one has no threads of its parent's."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="kraq-clients", daemon=True).start()
    return loop


def in_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Return what the coroutine returns or raises, from the loop; it is cancelled where the caller
    is interrupted."""
    future = asyncio.run_coroutine_threadsafe(work, _loop(os.getpid()))
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


class FromThreads:
    """An asynchronous client as one for threads."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.supports_response_schema = getattr(inner, "supports_response_schema", None)

    def complete(self, request: Request) -> Response:
        return in_loop(self.inner.complete(request))

    def stream(self, request: Request) -> Generator[Any, None, None]:
        events: AsyncGenerator[Any, None] = self.inner.stream(request)
        try:
            while (event := in_loop(_next(events))) is not None:
                yield event
        finally:
            with suppress(RuntimeError):  # a step that was interrupted is still ending
                in_loop(_closed(events))

    def close(self) -> None:
        in_loop(self.inner.aclose())


async def _next(events: AsyncGenerator[Any, None]) -> Any:
    return await anext(events, None)


async def _closed(events: AsyncGenerator[Any, None]) -> None:
    await events.aclose()
