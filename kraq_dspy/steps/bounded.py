"""Works on many items with a bounded number under way, and hands the items of one stage to the next while both run."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

from kraq_dspy.errors import BudgetExceededError

T = TypeVar("T")
R = TypeVar("R")


async def bounded_map(
    work: Callable[[T], Awaitable[R]],
    items: Iterable[T] | AsyncIterable[T],
    concurrency: int,
    *,
    after_each: Callable[[T], None] = lambda item: None,
) -> AsyncIterator[R]:
    """The results of `await work(item)` for every item, as they come, with at most `concurrency` items under way.

    Items are drawn as places become free, so a long iterable costs no memory. Once a result was taken,
    `after_each(item)` is called, and an iterator that had no item before is asked again (`direct.OrderedItems`).
    The first exception cancels the rest; a spent budget lets what is under way come to its end first, for that is
    paid already.
    """
    tasks = _Tasks(work, items, concurrency)
    try:
        while tasks.fill_places():
            for task, item in (await tasks.next_ended()).items():
                yield task.result()
                after_each(item)
    except BudgetExceededError:
        await tasks.run_to_their_end()
        raise
    finally:
        await tasks.cancel()


class _Tasks(Generic[T, R]):
    """The tasks of one map: those that work on an item, and the one that waits for the next item of another stage."""

    def __init__(
        self, work: Callable[[T], Awaitable[R]], items: Iterable[T] | AsyncIterable[T], concurrency: int
    ) -> None:
        self._work = work
        self._concurrency = concurrency
        self._items_at_hand = iter(()) if isinstance(items, AsyncIterable) else iter(items)
        self._items_to_come = aiter(items) if isinstance(items, AsyncIterable) else None
        self._drawing: asyncio.Future[T] | None = None
        self._working: dict[asyncio.Future[R], T] = {}
        self._ended: dict[asyncio.Future[R], T] = {}  # whose results are being handed on

    def fill_places(self) -> bool:
        """Begin with as many items as there are free places. False if nothing is under way and nothing comes."""
        for item in islice(self._items_at_hand, self._free_places):
            self._begin(item)

        if self._items_to_come is not None and self._drawing is None and self._free_places:
            self._drawing = asyncio.ensure_future(anext(self._items_to_come))
        return bool(self._working) or self._drawing is not None

    async def next_ended(self) -> Mapping[asyncio.Future[R], T]:
        """Wait until one of the tasks ends; those that have, with their items. Empty if it was a new item."""
        waited_for: list[asyncio.Future[Any]] = [*self._working, *self._drawings]
        await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        if self._drawing is not None and self._drawing.done():
            self._begin_with_the_drawn_item(self._drawing)

        done = [task for task in self._working if task.done()]
        self._ended = {task: self._working.pop(task) for task in done}
        return self._ended

    async def run_to_their_end(self) -> None:
        """Wait for what is under way, whatever comes of it; no further item is begun."""
        await asyncio.gather(*self._working, *self._ended, return_exceptions=True)

    async def cancel(self) -> None:
        """Cancel what is under way, and wait until it has let go of what it held."""
        tasks: list[asyncio.Future[Any]] = [*self._working, *self._ended, *self._drawings]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def _free_places(self) -> int:
        return self._concurrency - len(self._working)

    @property
    def _drawings(self) -> list[asyncio.Future[T]]:
        return [] if self._drawing is None else [self._drawing]

    def _begin(self, item: T) -> None:
        self._working[asyncio.ensure_future(self._work(item))] = item

    def _begin_with_the_drawn_item(self, drawing: asyncio.Future[T]) -> None:
        try:
            self._begin(drawing.result())
        except StopAsyncIteration:
            self._items_to_come = None
        self._drawing = None


class ItemStream(Generic[T]):
    """Hands items of one stage to the next while both run: those put in come out in order, until `close`.

    >>> async def both() -> list[str]:
    ...     stream = ItemStream()
    ...     stream.put("a")
    ...     stream.close()
    ...     return [item async for item in stream]
    >>> asyncio.run(both())
    ['a']
    """

    def __init__(self) -> None:
        self._items: asyncio.Queue[T | None] = asyncio.Queue()

    def put(self, item: T) -> None:
        self._items.put_nowait(item)

    def close(self) -> None:
        self._items.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[T]:
        while (item := await self._items.get()) is not None:
            yield item
