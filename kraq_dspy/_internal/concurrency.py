"""Works on many items at once, in threads or as tasks, each with the surrounding `dspy.context`; runs coroutines.

A function that must not be called twice for the same thing, as one that loads a model, is `called_once`; what copies of
a program share is `SharedByCopies`. Threads and processes are as many as `usable_cores`.
"""

import asyncio
import functools
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from itertools import islice
from pathlib import Path
from typing import Any, Generic, ParamSpec, Self, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class called_once(Generic[Arguments, Result]):  # noqa: N801 (a decorator)
    """`functools.cache` for what threads ask for together: all but the first wait, and get what it got.

    `functools.cache` calls the function in every thread that comes before the first call has ended.
    """

    def __init__(self, function: Callable[Arguments, Result]) -> None:
        cached = functools.cache(function)
        self._cached: Callable[Arguments, Result] = cached
        self._lock = threading.Lock()
        self.cache_clear = cached.cache_clear

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._lock:
            return self._cached(*args, **kwargs)


def run_all(work: Callable[[Item], Result], items: Sequence[Item], *, limit: int | None = None) -> list[Result]:
    """`work` of every item in threads, at most `limit` at a time (None: all), in the order of `items`.

    After an exception nothing new begins; it is raised when what is under way has ended.
    """
    if len(items) < 2:
        return list(map(work, items))
    numbered = as_done(lambda pair: (pair[0], work(pair[1])), enumerate(items), limit=limit or len(items))
    results = dict(numbered)
    return [results[number] for number in range(len(items))]


def as_done(work: Callable[[Item], Result], items: Iterable[Item], *, limit: int) -> Iterator[Result]:
    """Results as they come, at most `limit` in flight, so that items may be an endless stream.

    Each thread has a copy of the caller's context: a raw pool would lose `dspy.context`, the meter and the journal.
    `dspy.Parallel` has it, but asks slow items twice and turns every error into a bare Exception.
    """
    source = iter(items)
    running: set[Future[Result]] = set()
    with ThreadPoolExecutor(limit, thread_name_prefix="kraq") as pool:
        while True:
            for item in islice(source, limit - len(running)):
                running.add(pool.submit(copy_context().run, work, item))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


async def gather_all(
    work: Callable[[Item], Awaitable[Result]], items: Sequence[Item], *, limit: int | None = None
) -> list[Result]:
    """`await work` of every item, at most `limit` at a time (None: all), in the order of `items`.

    The first exception, or the caller's own cancellation, cancels the others: their requests end on the server too.
    """
    places = asyncio.Semaphore(limit or max(1, len(items)))

    async def in_turn(item: Item) -> Result:
        async with places:
            return await work(item)

    running = [asyncio.ensure_future(in_turn(item)) for item in items]
    try:
        return list(await asyncio.gather(*running))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def run_coroutine(work: Coroutine[Any, Any, Result]) -> Result:
    """Return what the coroutine returns: `asyncio.run`, in a thread of its own where a loop runs
    already, as in a notebook.

    Ctrl-C cancels the coroutine, and is raised when it has ended.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def main() -> Result:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result((asyncio.get_running_loop(), task))
        return await work

    with ThreadPoolExecutor(1, thread_name_prefix="kraq-loop") as pool:
        running = pool.submit(copy_context().run, asyncio.run, main())
        try:
            return running.result()
        except KeyboardInterrupt:
            loop, task = begun.result()
            loop.call_soon_threadsafe(task.cancel)
            raise


class SharedByCopies:
    """A store, a model, a connection or a count: a copied program holds the same one.

    DSPy's optimizers copy programs deeply; a copied index would be a second process on the same files, a copied model a
    second one in memory.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def usable_cores() -> int:
    """Cores that this process may use: its affinity and, in a container, its share of the processors."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        # "200000 100000": so many microseconds in each period, or "max"
        quota = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except OSError:
        quota = []
    if len(quota) == 2 and quota[0].isdigit():
        cores = min(cores, -(-int(quota[0]) // int(quota[1])))
    return max(1, cores)


def free_cores() -> int:
    """Usable cores without the share of the machine that was busy in the last minute; at least 1.

    Threads of one model wait for each other at every layer, so a thread without a core of its own slows all of them.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, round(usable_cores() * (1 - load / (os.cpu_count() or 1))))
