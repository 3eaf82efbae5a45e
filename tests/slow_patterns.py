"""Measures patterns of the package at their worst texts, up to a million characters, and prints the slow ones.

    python -m tests.slow_patterns [MODULE ...]    # those not measured yet, of modules that begin so, or of all
    python -m tests.slow_patterns --write         # and keep the digests of those that are not slow

A million characters for each of some hundred patterns take minutes. So those that were measured are kept by a digest
of the pattern, and `test_patterns.py` measures what it finds without one: a pattern that is new or was changed.
"""

import hashlib
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kraq_dspy.embedded import rewrite
from tests.patterns import is_bounded, patterns, texts

MEASURED = Path(__file__).with_name("patterns_measured.txt")
SHORT, LONG, WHOLE = 600, 4_800, 1_000_000
QUICK_S = 0.0004  # a text of SHORT characters that takes less has not been scanned again for each of its characters
ALLOWED = 24.0  # eight times the text: linear work takes eight times as long, quadratic 64 times
LIMIT_S = 4.0  # of the processor, for the whole text
AT_MOST = {
    rewrite.EITHER.pattern: rewrite.LONGEST_COMPARISON,
}
"""Patterns that meet short texts alone, with the characters of the longest."""


class SlowPatternError(Exception):
    """A pattern that is not done within its limit."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises SlowPatternError in the block after so many seconds of the processor in this process."""

    def stop(*_: Any) -> None:
        raise SlowPatternError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def cost(pattern: re.Pattern[str], text: str, how: str) -> float:
    """Processor seconds of this thread."""
    started = time.thread_time()
    if how == "match":
        pattern.match(text)
        pattern.fullmatch(text)
    else:
        for _ in pattern.finditer(text):
            pass
    return time.thread_time() - started


def slow_text(pattern: re.Pattern[str], how: str) -> str:
    """The beginning of the first text for which the time grows with the square, or of one that takes longer than the
    limit at its whole size; "" if there is none."""
    if is_bounded(pattern.pattern, pattern.flags):
        return ""
    if most := AT_MOST.get(pattern.pattern):
        return _slow_short_text(pattern, how, most)

    longest, worst = 0.0, ""
    shorter_texts = texts(pattern.pattern, pattern.flags, SHORT)
    for short, long in zip(shorter_texts, texts(pattern.pattern, pattern.flags, LONG), strict=True):
        try:
            with limited(LIMIT_S):
                seconds = cost(pattern, short, how)
                if seconds > QUICK_S and _growth(pattern, short, long, how) > ALLOWED:
                    return long[:60]
        except SlowPatternError:
            return long[:60]
        if seconds > longest:
            longest, worst = seconds, short

    body = worst[:-1]
    try:
        with limited(LIMIT_S):
            cost(pattern, (body * (WHOLE // max(1, len(body)) + 1))[:WHOLE] + "\x00", how)
    except SlowPatternError:
        return body[:60]
    return ""


def _slow_short_text(pattern: re.Pattern[str], how: str, most: int) -> str:
    for text in texts(pattern.pattern, pattern.flags, most):
        try:
            with limited(LIMIT_S):
                cost(pattern, text, how)
        except SlowPatternError:
            return text[:60]
    return ""


def _growth(pattern: re.Pattern[str], short: str, long: str, how: str) -> float:
    """How many times as long the long text takes, at the least of three times."""
    return min(cost(pattern, long, how) / max(cost(pattern, short, how), QUICK_S / 20) for _ in range(3))


def digest(pattern: str, flags: int, how: str) -> str:
    return hashlib.sha256(f"{pattern}\n{flags}\n{how}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def measured() -> set[str]:
    """Digests of the patterns that were measured and were not slow."""
    return set(MEASURED.read_text("ascii").split())


def slow_patterns(places: dict[tuple[str, int, str], str]) -> list[str]:
    """Lines about those of the patterns that are slow."""
    lines = []
    for (source, flags, how), module in places.items():
        if text := slow_text(re.compile(source, flags), how):
            lines.append(f"{module}: {source!r} is slow on {text!r}")
    return lines


def main() -> None:
    chosen = tuple(word for word in sys.argv[1:] if word != "--write")
    places = patterns()
    every = {digest(*key) for key in places}
    good = measured() & every
    try:
        for key, module in places.items():
            if digest(*key) in good or (chosen and not module.startswith(chosen)):
                continue
            lines = slow_patterns({key: module})
            good |= set() if lines else {digest(*key)}
            print(*lines, sep="\n", end="\n" if lines else "", flush=True)
    finally:
        if "--write" in sys.argv:
            MEASURED.write_text("".join(f"{each}\n" for each in sorted(good)), "ascii")


if __name__ == "__main__":
    main()
