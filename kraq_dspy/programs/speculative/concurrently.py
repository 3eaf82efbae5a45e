"""Many calls at once, in threads or as tasks, each with the surrounding `dspy.context`."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_all(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """`work` of every item, all at once, in the order of `items`. The first exception is raised when all have ended."""
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(max_workers=len(items), thread_name_prefix="kraq") as pool:
        running = [pool.submit(contextvars.copy_context().run, work, item) for item in items]
    return [future.result() for future in running]


async def gather_all(work: Callable[[Item], Awaitable[Result]], items: Sequence[Item]) -> list[Result]:
    """`await work` of every item, all at once, in the order of `items`.

    The first exception, or the caller's own cancellation, cancels the others: their requests end on the server too.
    """
    running = [asyncio.ensure_future(work(item)) for item in items]
    try:
        return list(await asyncio.gather(*running))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
