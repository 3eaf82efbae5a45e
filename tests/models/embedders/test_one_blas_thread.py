"""Encoding a question keeps numpy to one thread, and gives back what was set before."""

import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from kraq_dspy.models.embedders.numpy_bert import OneBlasThread


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_one_thread_inside_and_what_was_set_before_outside() -> None:
    with threadpool_limits(3, user_api="blas"):
        with OneBlasThread():
            assert threads() == {1}
        assert threads() == {3}


def test_the_limit_stays_until_the_last_of_several_threads_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Recorded:
        def limit(self, *, limits: int, user_api: str) -> "Recorded":
            done.append(f"{user_api} {limits}")
            return self

        def restore_original_limits(self) -> None:
            done.append("back")

    monkeypatch.setattr("kraq_dspy.models.embedders.numpy_bert.ThreadpoolController", Recorded)
    limit, entered, leave = OneBlasThread(), threading.Event(), threading.Event()

    def other() -> None:
        with limit:
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with limit:
        thread.start()
        assert entered.wait(10)
    assert done == ["blas 1"]  # the other one is still inside
    leave.set()
    thread.join()
    assert done == ["blas 1", "back"]


def test_the_libraries_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    class Counted(ThreadpoolController):  # type: ignore[misc]
        def __init__(self) -> None:
            looked.append(1)
            super().__init__()

    monkeypatch.setattr("kraq_dspy.models.embedders.numpy_bert.ThreadpoolController", Counted)
    limit = OneBlasThread()
    for _ in range(3):
        with limit:
            pass
    assert len(looked) == 1
