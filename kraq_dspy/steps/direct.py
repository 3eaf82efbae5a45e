"""How a stage runs: a program mapped over items, a bounded number at a time."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import dspy

from kraq_dspy.errors import BudgetExceededError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Item:
    """One call of a program: its id within the stage, and the program's inputs by name."""

    id: str
    inputs: Mapping[str, Any]


Items = Iterable[Item] | AsyncIterable[Item]


@dataclass(frozen=True, slots=True)
class Done:
    """What a program made of an item, and the name of the model that it asked."""

    id: str
    prediction: dspy.Prediction
    model: str


class Steps(Protocol):
    """Maps a program over items. The pipeline is written against this, so it runs the same in memory and on disk."""

    def map(
        self, stage: str, role: str, program: dspy.Module, items: Items, *, total: int | None = None
    ) -> AsyncIterator[Done]:
        """Yields what is done, in any order; an item that failed is left out.

        Where `items` come one by one from another stage, the two run at the same time. `role` says whose model does it
        where the program has none of its own. `total` is the number of items of the stage; None where an earlier call
        for the same stage gave it.
        """


class DirectSteps:
    """Runs programs with the models of the surrounding `dspy.context`; keeps nothing; the first failure is raised."""

    def __init__(self, concurrency: int = 32) -> None:
        self.concurrency = concurrency

    async def map(
        self, stage: str, role: str, program: dspy.Module, items: Items, *, total: int | None = None
    ) -> AsyncIterator[Done]:
        async def work(item: Item) -> Done:
            return Done(item.id, await program.acall(**item.inputs), model_of(program))

        async for done in bounded_map(work, items, self.concurrency):
            yield done


def model_of(program: dspy.Module) -> str:
    """The name of the model that the program would ask now; "" where there is none."""
    own = [predictor.lm for _, predictor in program.named_predictors() if predictor.lm is not None]
    lm = own[0] if own else dspy.settings.lm
    return "" if lm is None else str(lm.model)


async def bounded_map(
    work: Callable[[T], Awaitable[R]], items: Iterable[T] | AsyncIterable[T], concurrency: int
) -> AsyncIterator[R]:
    """`await work(item)` for every item, at most `concurrency` at once, results as they come.

    Items are drawn as places become free, so a long iterable costs no memory. The first exception cancels the rest;
    a spent budget lets what is under way come to its end first, for that is paid already.
    """
    later = aiter(items) if isinstance(items, AsyncIterable) else None
    at_once = iter(()) if isinstance(items, AsyncIterable) else iter(items)
    drawing: asyncio.Future[T] | None = None
    running: set[asyncio.Future[R]] = set()
    done: set[asyncio.Future[R]] = set()
    try:
        while True:
            for item in at_once:
                running.add(asyncio.ensure_future(work(item)))
                if len(running) >= concurrency:
                    break
            if later is not None and drawing is None and len(running) < concurrency:
                drawing = asyncio.ensure_future(anext(later))
            if drawing is None and not running:
                return
            await asyncio.wait({*running, *([drawing] if drawing else ())}, return_when=asyncio.FIRST_COMPLETED)
            if drawing is not None and drawing.done():
                try:
                    running.add(asyncio.ensure_future(work(drawing.result())))
                except StopAsyncIteration:
                    later = None
                drawing = None
            done = {task for task in running if task.done()}
            running -= done
            for task in done:
                yield task.result()
    except BudgetExceededError:
        await asyncio.gather(*running, *done, return_exceptions=True)
        raise
    finally:
        left = [*running, *done, *([drawing] if drawing else ())]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class Places:
    """A bounded number of places for calls, over all stages that run at the same time.

    A call holds one from the request to the reply. What comes before and after, and the wait before a server is asked
    again, needs none, so that a server always has as many calls to answer as it may have.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._arrivals = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def one(self, rank: int = 0) -> AsyncIterator[None]:
        """A place, once there is one; of those who wait the lowest `rank` goes first, then who came first."""
        await self._enter(rank)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, rank: int) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._arrivals), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place came together with the end
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            *_, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Handover(Generic[T]):
    """What one stage gives to the next while both run: items put in come out in order, until `close`."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[list[T]] = asyncio.Queue()

    def put(self, item: T) -> None:
        self._items.put_nowait([item])

    def close(self) -> None:
        self._items.put_nowait([])

    async def __aiter__(self) -> AsyncIterator[T]:
        while item := await self._items.get():
            yield item[0]
