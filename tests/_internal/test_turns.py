"""Tests that a few threads compute at a time, whatever becomes of them."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kraq_dspy._internal.turns import Turns

PATIENCE_S = 60


def test_no_more_threads_are_inside_than_there_are_places() -> None:
    turns, inside, most = Turns(2), [0], [0]
    lock = threading.Lock()

    @turns
    def work(number: int) -> int:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        both_have_come.wait(PATIENCE_S)  # both places are taken at the same time
        with lock:
            inside[0] -= 1
        return number

    both_have_come = threading.Barrier(2)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(16))) == list(range(16))
    assert most == [2]


def test_a_thread_may_enter_twice_though_there_is_one_place() -> None:
    turns = Turns(1)
    with ThreadPoolExecutor(1) as pool:
        with turns, turns:
            waiting = pool.submit(turns(lambda: "done"))
            assert not waiting.done()
        assert waiting.result(PATIENCE_S) == "done"


def test_an_error_gives_the_place_back() -> None:
    turns = Turns(1)
    for _ in range(3):
        with pytest.raises(KeyError), turns:
            raise KeyError
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(turns(lambda: "done")).result(PATIENCE_S) == "done"


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_forked_process_has_all_places() -> None:
    turns, leave = Turns(1), threading.Event()
    entered = threading.Event()

    def stay() -> None:
        with turns:
            entered.set()
            leave.wait(PATIENCE_S)

    thread = threading.Thread(target=stay)
    thread.start()
    assert entered.wait(PATIENCE_S)
    child = os.fork()
    if not child:
        with turns:
            os._exit(7)
    leave.set()
    thread.join()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
