"""Lets Python make millions of records without looking through all of them again and again."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_pauses, _was_on = 0, False


@contextmanager
def collector_paused() -> Iterator[None]:
    """No search for cycles of objects meanwhile, in the whole process: records are none, and a third of the time of a
    large graph goes to it. Also a decorator. Not for work that waits for others: what they leave is kept."""
    global _pauses, _was_on
    with _lock:
        if _pauses == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _was_on:
                gc.enable()
