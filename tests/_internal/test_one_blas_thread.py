"""Tests that small products of matrices are made by one thread, and that their number is put back afterwards."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from kraq_dspy._internal import one_blas_thread
from kraq_dspy._internal.one_blas_thread import ONE_BLAS_THREAD, OneBlasThread, product


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def in_another_thread(work: Callable[[], set[int]]) -> set[int]:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def threads_inside() -> set[int]:
    with ONE_BLAS_THREAD:
        return threads()


@pytest.fixture
def three_threads() -> Iterator[None]:
    vars(ONE_BLAS_THREAD).pop("_libraries", None)  # other tests have loaded further ones since it looked
    with threadpool_limits(3, user_api="blas"):
        yield


@pytest.mark.usefixtures("three_threads")
def test_one_thread_inside_and_what_was_set_before_outside() -> None:
    assert threads_inside() == {1}
    assert threads() == {3}


@pytest.mark.usefixtures("three_threads")
def test_it_holds_in_every_thread_whichever_came_first() -> None:
    """threadpoolctl lets the first thread that sets a limit set further ones, and ignores what others set."""
    assert threads_inside() == {1}
    assert in_another_thread(threads_inside) == {1}
    assert in_another_thread(threads_inside) == {1}
    assert threads() == {3}


@pytest.mark.usefixtures("three_threads")
def test_the_last_thread_to_leave_lifts_the_limit_though_another_set_it() -> None:
    left = threading.Event()

    def leave_last() -> set[int]:
        with ONE_BLAS_THREAD:
            entered.set()
            assert left.wait(60)
            return threads()

    entered = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with ONE_BLAS_THREAD:
            other = pool.submit(leave_last)
            assert entered.wait(60)
        assert threads() == {1}
        left.set()
        assert other.result() == {1}
    assert threads() == {3}


@pytest.mark.usefixtures("three_threads")
def test_an_error_inside_lifts_the_limit_and_a_thread_may_enter_twice() -> None:
    with pytest.raises(KeyError), ONE_BLAS_THREAD, ONE_BLAS_THREAD:
        raise KeyError
    assert threads() == {3}


@pytest.mark.usefixtures("three_threads")
def test_small_products_are_made_by_one_thread_and_large_ones_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []

    class Watched(np.ndarray):  # type: ignore[type-arg]
        def __matmul__(self, other: Any) -> Any:
            seen.append(threads())
            return np.asarray(self) @ other

    rows = np.arange(6.0).reshape(2, 3).view(Watched)
    assert product(rows, np.ones((3, 4))).tolist() == [[3.0] * 4, [12.0] * 4]
    monkeypatch.setattr(one_blas_thread, "_LARGE", 23)
    assert product(rows, np.ones(3)).tolist() == [3.0, 12.0]  # 6 multiplications
    assert product(rows, np.ones((3, 4))).tolist() == [[3.0] * 4, [12.0] * 4]  # 24
    assert seen == [{1}, {1}, {3}]


def test_the_libraries_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    class Counted(ThreadpoolController):  # type: ignore[misc]
        def __init__(self) -> None:
            looked.append(1)
            super().__init__()

    monkeypatch.setattr(one_blas_thread, "ThreadpoolController", Counted)
    limit = OneBlasThread()
    for _ in range(3):
        with limit:
            pass
    assert len(looked) == 1
