"""Lets a few threads compute at a time, so that many questions at once cost what they cost one by one.

Python runs one thread at a time, and each of numpy's products, sorts and sums gives the interpreter to the next thread
that wants it. Among 48 threads, a search took three times the processor time that it takes in one.
"""

import os
import threading
from contextlib import ContextDecorator


class Turns(ContextDecorator):
    """At most `size` threads are inside at a time; others wait. A thread may enter twice.

    >>> turns = Turns(size=2)
    >>> with turns, turns:
    ...     print("in turn")
    in turn

    It also decorates a function. Enter it for arithmetic alone: never while a lock is held that somebody inside may
    want, and never to wait for a model, a server or another thread.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.begin_anew()
        if hasattr(os, "register_at_fork"):  # a forked process has none of the threads that were inside
            os.register_at_fork(after_in_child=self.begin_anew)

    def begin_anew(self) -> None:
        """Take it that no thread is inside."""
        self._places = threading.Semaphore(self._size)
        self._of_thread = threading.local()

    def __enter__(self) -> "Turns":
        depth = getattr(self._of_thread, "depth", 0)
        if not depth:
            self._places.acquire()
        self._of_thread.depth = depth + 1
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._of_thread.depth -= 1
        if not self._of_thread.depth:
            self._places.release()


IN_TURN = Turns(2 + (os.cpu_count() or 1) // 4)
"""Of this process. More than two threads gain only where products are so large that they take most of the time."""
