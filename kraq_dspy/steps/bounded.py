"""Maps work over items as tasks, with a bounded number under way."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from kraq_dspy.errors import BudgetExceededError

T = TypeVar("T")
R = TypeVar("R")


async def bounded_map(
    work: Callable[[T], Awaitable[R]],
    items: Iterable[T] | AsyncIterable[T],
    concurrency: int,
    *,
    ended: Callable[[T], None] = lambda item: None,
) -> AsyncIterator[R]:
    """The results of `await work(item)` for every item, as they come, with at most `concurrency` items under way.

    Items are drawn as places become free, so a long iterable costs no memory. Once a result was taken, `ended(item)` is
    called, and an iterator that had no item before is asked again (`direct.OrderedItems`). The first exception cancels
    the rest; a spent budget lets what is under way come to its end first, for that is paid already.
    """
    later = aiter(items) if isinstance(items, AsyncIterable) else None
    at_once = iter(()) if isinstance(items, AsyncIterable) else iter(items)
    drawing: asyncio.Future[T] | None = None
    running: dict[asyncio.Future[R], T] = {}
    done: set[asyncio.Future[R]] = set()
    try:
        while True:
            for item in at_once:
                running[asyncio.ensure_future(work(item))] = item
                if len(running) >= concurrency:
                    break
            if later is not None and drawing is None and len(running) < concurrency:
                drawing = asyncio.ensure_future(anext(later))
            if drawing is None and not running:
                return
            await asyncio.wait({*running, *([drawing] if drawing else ())}, return_when=asyncio.FIRST_COMPLETED)
            if drawing is not None and drawing.done():
                try:
                    running[asyncio.ensure_future(work(drawing.result()))] = drawing.result()
                except StopAsyncIteration:
                    later = None
                drawing = None
            done = {task for task in running if task.done()}
            finished = {task: running.pop(task) for task in done}
            for task, item in finished.items():
                yield task.result()
                ended(item)
    except BudgetExceededError:
        await asyncio.gather(*running, *done, return_exceptions=True)
        raise
    finally:
        left = [*running, *done, *([drawing] if drawing else ())]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class OneByOne:
    """Lets tasks go on one by one, in the order in which they came, with whatever else the loop has to do in between.

    Replies come in waves, and what is made of one takes some milliseconds: without turns the next request would wait
    for all of the wave, and the server with it. A task that is to go on says `await one_by_one.wait()`.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def wait(self) -> None:
        async with self._lock:
            await asyncio.sleep(0)


class CallSlots:
    """Bounds the calls in flight, over all stages that run at the same time.

    A call holds a slot from the request to the reply. What comes before and after, and the wait before a server is
    asked again, needs none, so that a server always has as many calls to answer as it may have; what comes after is
    done `one_by_one`.
    """

    def __init__(self, count: int) -> None:
        self.one_by_one = OneByOne()
        self._free = count
        self._arrivals = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def slot(self, rank: int = 0) -> AsyncIterator[None]:
        """A slot, once one is free; of those who wait the lowest `rank` goes first, then who came first."""
        await self._enter(rank)
        try:
            yield
        finally:
            self._leave()
        await self.one_by_one.wait()

    async def _enter(self, rank: int) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._arrivals), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot came together with the end
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            *_, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class ItemStream(Generic[T]):
    """Hands items of one stage to the next while both run: those put in come out in order, until `close`."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[list[T]] = asyncio.Queue()

    def put(self, item: T) -> None:
        self._items.put_nowait([item])

    def close(self) -> None:
        self._items.put_nowait([])

    async def __aiter__(self) -> AsyncIterator[T]:
        while item := await self._items.get():
            yield item[0]


async def abatches(items: AsyncIterator[T], size: int) -> AsyncIterator[list[T]]:
    """The items as they come, in lists of `size`; the last may be shorter."""
    batch: list[T] = []
    async for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
