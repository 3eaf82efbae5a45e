"""Asks a server again where an answer is late ("hedged requests", Dean and Barroso, The Tail at Scale, 2013).

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

_CALLS = 3  # for one answer, at most
_KNOWN = 20  # answers from which on one can be called late
_KEPT = 100
_SHARE = 0.95  # of the answers came sooner than what is taken for the pace
_TIMES = 2.0  # the pace: then an answer is late
_LEAST_S = 0.5  # what comes sooner is never late
_SECOND_CALLS = 0.05  # at most, of the answers
_UNKNOWN_S = 1.0  # until somebody looks again whether an answer is late


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

    def left_s(self, waited_s: float) -> float:
        """Seconds until an answer is late that was waited for so long; what is not known yet is soon asked again."""
        late_s = self.late_after_s()
        return _UNKNOWN_S if late_s is None else late_s - waited_s

    def count_second_call(self) -> None:
        self._second_calls += 1


async def first_answer(
    ask: Callable[[], Awaitable[T]],
    pace: Pace,
    place: Callable[[], AbstractAsyncContextManager[None]],
    second_call: Callable[[], None] = lambda: None,
) -> T:
    """Of `ask()`, or of a second and a third, each of which begins in a `place` of its own once the one before is late.

    The others are left. Raises what the first raises where none that is under way by then is answered. `second_call` is
    told of each but the first.
    """

    async def timed() -> T:
        started = time.monotonic()
        answer = await ask()
        pace.took(time.monotonic() - started)
        return answer

    async def again() -> T:
        async with place():
            under_way.add(asyncio.current_task())
            second_call()
            logger.info("no answer after %.1f s, when most are there: asked once more", time.monotonic() - begun)
            return await timed()

    begun = last_call = time.monotonic()
    calls = [asyncio.ensure_future(timed())]
    under_way: set[asyncio.Future[T] | None] = {calls[0]}
    try:
        while True:
            left_s = pace.left_s(time.monotonic() - last_call) if len(calls) < _CALLS else None
            if left_s is not None and left_s <= 0:
                pace.count_second_call()  # now: of many that are late together few may ask again
                calls.append(asyncio.ensure_future(again()))
                last_call = time.monotonic()
                continue
            await asyncio.wait(
                [call for call in calls if not call.done()], timeout=left_s, return_when=asyncio.FIRST_COMPLETED
            )
            for call in calls:
                if call.done() and not call.exception():
                    return call.result()
            if all(call.done() for call in calls if call in under_way):
                return calls[0].result()
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
