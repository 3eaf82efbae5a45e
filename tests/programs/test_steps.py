import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

import pytest

from kraq_dspy.programs.steps import bounded_map


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


def test_items_are_drawn_as_places_become_free() -> None:
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
