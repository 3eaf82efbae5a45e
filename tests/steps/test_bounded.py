"""Tests work over items with a bounded number under way."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

import pytest

from kraq_dspy.errors import BudgetExceededError
from kraq_dspy.steps.bounded import ItemStream, bounded_map


async def collect(work: Callable[[int], Awaitable[int]], items: Iterable[int], concurrency: int) -> list[int]:
    return [result async for result in bounded_map(work, items, concurrency)]


def test_no_more_than_the_bound_runs_at_once() -> None:
    running = 0
    most = 0

    async def work(item: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return item * 2

    assert sorted(asyncio.run(collect(work, range(20), 4))) == [item * 2 for item in range(20)]
    assert most == 4


def test_items_are_drawn_as_slots_become_free() -> None:
    drawn = 0

    def items() -> Iterator[int]:
        nonlocal drawn
        for item in range(1000):
            drawn += 1
            yield item

    async def first() -> None:
        async def work(item: int) -> int:
            return item

        async for _ in bounded_map(work, items(), 8):
            break

    asyncio.run(first())
    assert drawn <= 16


def test_the_first_exception_cancels_the_rest() -> None:
    cancelled = []

    async def work(item: int) -> int:
        if item == 3:
            raise ValueError("three")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        return item

    with pytest.raises(ValueError, match="three"):
        asyncio.run(collect(work, range(6), 6))
    assert sorted(cancelled) == [0, 1, 2, 4, 5]


def test_a_spent_budget_lets_what_is_under_way_finish() -> None:
    finished = []

    async def work(item: int) -> int:
        if item == 1:
            raise BudgetExceededError("spent")
        await asyncio.sleep(0.01)
        finished.append(item)
        return item

    with pytest.raises(BudgetExceededError):
        asyncio.run(collect(work, range(100), 4))
    assert finished == [0, 2, 3]


def test_a_stage_works_on_what_another_hands_over_while_that_one_goes_on() -> None:
    """Each side waits for the other, so one after the other would never end."""

    async def both() -> list[int]:
        stream: ItemStream[int] = ItemStream()
        received = asyncio.Event()

        async def work(item: int) -> int:
            received.set()
            return item * 2

        async def give() -> None:
            stream.put(1)
            await received.wait()
            stream.put(2)
            stream.close()

        async def take() -> list[int]:
            return [result async for result in bounded_map(work, stream, 4)]

        _, taken = await asyncio.wait_for(asyncio.gather(give(), take()), timeout=30)
        return taken

    assert asyncio.run(both()) == [2, 4]


def test_a_map_that_is_left_while_it_waits_for_items_lets_go_of_them() -> None:
    async def leave() -> int:
        stream: ItemStream[int] = ItemStream()
        stream.put(1)

        async def work(item: int) -> int:
            return item

        results = bounded_map(work, stream, 4)
        first = await anext(results)
        await results.aclose()  # type: ignore[attr-defined]
        return first + len(asyncio.all_tasks()) - 1

    assert asyncio.run(leave()) == 1
