"""Threads ask clients of an event loop: one loop for the process, which survives interruptions."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kraq_dspy.models.lms.from_threads import FromThreads, in_loop


class Client:
    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.closed = 0

    async def complete(self, request: Any) -> Any:
        self.threads.add(threading.get_ident())
        await asyncio.sleep(0.01)
        return request

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        try:
            for letter in request:
                yield letter
        finally:
            self.closed += 1


def test_all_threads_ask_in_one_loop() -> None:
    client = Client()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(FromThreads(client).complete, range(40))) == list(range(40))
    assert len(client.threads) == 1
    assert threading.get_ident() not in client.threads


def test_a_stream_that_is_left_is_closed() -> None:
    client = Client()
    assert list(FromThreads(client).stream("abc")) == ["a", "b", "c"]
    left = FromThreads(client).stream("abc")
    assert next(left) == "a"
    left.close()
    assert client.closed == 2


def test_an_error_comes_to_who_asked_and_the_loop_goes_on() -> None:
    async def broken() -> None:
        raise ZeroDivisionError("x")

    async def sound() -> int:
        return 1

    with pytest.raises(ZeroDivisionError):
        in_loop(broken())
    assert in_loop(sound()) == 1
