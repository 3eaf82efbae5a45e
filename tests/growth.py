"""Tells work that grows with the length of a text from work that grows with its square, on a busy machine too."""

import time
from collections.abc import Callable

TIMES = 8  # a longer text: linear work takes 8 times as long, quadratic 64 times
ALLOWED = 24.0
SHORTEST_S = 0.002  # what takes less is mostly what every call costs
ATTEMPTS = 3


def require_linear(work: Callable[[str], object], text_of_size: Callable[[int], str], size: int) -> None:
    """Fail where `work` takes more than 24 times as long for a text of 8 times the size.

    Processor time of this thread is compared with itself, so that other processes count little; what they disturb
    all the same is measured again. `size` is that of the longer text.
    """
    short, long = text_of_size(size // TIMES), text_of_size(size)
    ratios = []
    for _ in range(ATTEMPTS):
        ratios.append(_seconds(work, long) / max(_seconds(work, short), SHORTEST_S))
        if ratios[-1] <= ALLOWED:
            return

    raise AssertionError(f"{TIMES} times the text took {min(ratios):.0f} times as long: {text_of_size(1)[:60]!r}")


def _seconds(work: Callable[[str], object], text: str) -> float:
    start = time.thread_time()
    work(text)
    return time.thread_time() - start
