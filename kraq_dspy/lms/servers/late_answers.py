"""Asks a server a second time where an answer is late ("hedged requests", Dean and Barroso, The Tail at Scale, 2013).

A request that hangs keeps its place until it is given up, after two minutes by default, and a stage ends with its last
answer: all that follows would wait for it.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

_KNOWN = 20  # answers from which on one can be called late
_KEPT = 100
_SHARE = 0.95  # of the answers came sooner than what is taken for the pace
_TIMES = 2.0  # the pace: then an answer is late
_LEAST_S = 0.5  # what comes sooner is never late
_SECOND_CALLS = 0.05  # at most, of the answers


class Pace:
    """How long a model's last hundred answers took, and how many second calls there were."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=_KEPT)
        self._answers = self._second_calls = 0

    def took(self, seconds: float) -> None:
        """Note the time of one answer."""
        self._seconds.append(seconds)
        self._answers += 1

    def late_after_s(self) -> float | None:
        """Twice what 95 of a hundred answers took at most; None where too little is known, or second calls are one in
        twenty already."""
        if len(self._seconds) < _KNOWN or self._second_calls >= self._answers * _SECOND_CALLS:
            return None
        pace = sorted(self._seconds)[int(_SHARE * (len(self._seconds) - 1))]
        return max(_LEAST_S, _TIMES * pace)

    def count_second_call(self) -> None:
        self._second_calls += 1


async def first_answer(
    ask: Callable[[], Awaitable[T]],
    pace: Pace,
    place: Callable[[], AbstractAsyncContextManager[None]],
    second_call: Callable[[], None] = lambda: None,
) -> T:
    """Of `ask()`, or of a second one, which begins in a `place` of its own once the first is late; the other is left.

    Raises what the first raises, unless the second, under way by then, is answered. `second_call` is told of one.
    """

    async def timed() -> T:
        started = time.monotonic()
        answer = await ask()
        pace.took(time.monotonic() - started)
        return answer

    late_s = pace.late_after_s()
    if late_s is None:
        return await timed()

    is_under_way = False

    async def again() -> T:
        nonlocal is_under_way
        async with place():
            is_under_way = True
            pace.count_second_call()
            second_call()
            logger.info("no answer after %.1f s, which others had long before: asked a second time", late_s)
            return await timed()

    first = asyncio.ensure_future(timed())
    calls = [first]
    try:
        await asyncio.wait(calls, timeout=late_s)
        if not first.done():
            second = asyncio.ensure_future(again())
            calls.append(second)
            await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            if second.done() and second.exception():
                await asyncio.wait([first])
            elif first.done() and first.exception() and is_under_way:
                await asyncio.wait([second])
        return next((call for call in calls if call.done() and not call.exception()), first).result()
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
