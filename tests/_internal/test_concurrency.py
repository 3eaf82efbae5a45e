"""Tests that work on many items keeps order and limit, in threads and as tasks, and ends at the first error."""

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy._internal import concurrency
from kraq_dspy._internal.concurrency import as_done, called_once, free_cores, gather_all, run_all, usable_cores


def test_results_come_in_the_order_of_the_items_although_the_last_ends_first() -> None:
    ended = [threading.Event() for _ in range(3)]

    def work(number: int) -> int:
        if number < 2:
            assert ended[number + 1].wait(60)
        ended[number].set()
        return 10 * number

    assert run_all(work, [0, 1, 2]) == [0, 10, 20]
    assert run_all(work, []) == []


def test_no_more_than_the_limit_are_in_flight_in_threads_or_as_tasks() -> None:
    lock = threading.Lock()
    in_flight: set[int] = set()
    most: list[int] = []

    def begin(item: int) -> None:
        with lock:
            in_flight.add(item)
            most.append(len(in_flight))

    def work(item: int) -> int:
        begin(item)
        with lock:
            in_flight.discard(item)
        return item

    async def wait(item: int) -> int:
        begin(item)
        await asyncio.sleep(0)
        in_flight.discard(item)
        return item

    assert run_all(work, range(50), limit=3) == list(range(50))
    assert sorted(as_done(work, iter(range(50)), limit=3)) == list(range(50))
    assert max(most) <= 3
    most.clear()
    assert asyncio.run(gather_all(wait, range(50), limit=3)) == list(range(50))
    assert max(most) == 3


def test_of_an_endless_stream_no_more_is_read_than_the_limit_ahead_of_the_results() -> None:
    read: list[int] = []

    def endless() -> Iterator[int]:
        for number in itertools.count():
            read.append(number)
            yield number

    for taken, _ in enumerate(as_done(lambda item: time.sleep(item % 3 / 1000), endless(), limit=3), start=1):
        if taken == 60:
            break
    assert len(read) <= taken + 2 * 3  # three at work, and up to three done but not yet taken


def test_after_an_error_nothing_new_begins() -> None:
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        raise ValueError(f"item {number}")

    with pytest.raises(ValueError, match=r"item [01]"):
        run_all(work, range(100), limit=2)
    assert len(begun) <= 4


def test_threads_see_the_model_of_the_surrounding_context() -> None:
    lm = DummyLM([{"answer": "x"}])
    with dspy.context(lm=lm):
        assert run_all(lambda _: dspy.settings.lm, range(3)) == [lm, lm, lm]


def test_a_cancelled_caller_cancels_what_is_under_way() -> None:
    cancelled: list[int] = []

    async def work(item: int) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise

    async def main() -> None:
        task = asyncio.ensure_future(gather_all(work, range(3)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert sorted(cancelled) == [0, 1, 2]


def test_what_is_called_once_is_not_called_by_threads_that_come_meanwhile() -> None:
    together = threading.Barrier(4)
    calls: list[str] = []

    @called_once
    def loaded(name: str) -> list[str]:
        calls.append(name)
        time.sleep(0.05)
        return [name]

    def ask(name: str) -> list[str]:
        together.wait(timeout=60)
        return loaded(name)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(ask, ["a", "a", "a", "b"]))
    assert sorted(calls) == ["a", "b"]
    assert results[0] is results[1] is results[2]
    loaded.cache_clear()
    assert loaded("a") is not results[0]


def test_free_cores_are_at_least_one_and_at_most_the_usable_ones() -> None:
    assert 1 <= free_cores() <= usable_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(("load", "free"), [(0.0, 6), (4.0, 3), (9.0, 1)])
def test_the_busy_share_of_the_machine_is_taken_from_the_usable_cores(
    monkeypatch: pytest.MonkeyPatch, load: float, free: int
) -> None:
    monkeypatch.setattr(concurrency, "usable_cores", lambda: 6)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    assert free_cores() == free
