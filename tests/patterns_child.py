"""Matches patterns of the package against their worst texts, and prints those whose time grows with the square.

    python -m tests.patterns_child [MODULE ...]

Modules by the beginning of their names, by default those whose patterns meet whole requests.
`test_patterns.py` runs it with a limit of processor time: the pattern printed last is the one that ran into it.
"""

import json
import re
import resource
import sys
import time

from tests.patterns import patterns, texts

SHORT, LONG = 2_000, 16_000
WHOLE = 1_000_000
QUICK_S = 0.016  # a text of LONG characters that takes less has not been scanned again for each of its characters
ALLOWED = 24.0  # eight times the text: linear work takes eight times as long, quadratic 64 times
LIMIT_S = 240
WHOLE_TEXTS = (
    "kraq_dspy.apps.serve", "kraq_dspy.language.declining", "kraq_dspy.language.follow_ups",
    "kraq_dspy.language.social_turns", "kraq_dspy.programs.conversation",
)  # fmt: skip
"""What meets whole requests."""


def cost(pattern: re.Pattern[str], text: str, how: str) -> float:
    """Processor seconds of this process."""
    started = time.process_time()
    if how == "match":
        pattern.match(text)
        pattern.fullmatch(text)
    else:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - started


def slow_text(pattern: re.Pattern[str], how: str) -> tuple[str, float]:
    """The first text for which the time grows with the square, and by how much; otherwise "" with 0.0, after the text
    that took longest was read at its whole size."""
    longest, worst = 0.0, ""
    shorter_texts = texts(pattern.pattern, pattern.flags, SHORT)
    for short, long in zip(shorter_texts, texts(pattern.pattern, pattern.flags, LONG), strict=True):
        seconds = cost(pattern, long, how)
        if seconds > longest:
            longest, worst = seconds, long
        if seconds <= QUICK_S:
            continue
        growth = min(cost(pattern, long, how) / max(cost(pattern, short, how), QUICK_S / 20) for _ in range(3))
        if growth > ALLOWED:
            return long, growth

    body = worst[:-1]
    cost(pattern, (body * (WHOLE // max(1, len(body)) + 1))[:WHOLE] + "\x00", how)
    return "", 0.0


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
    chosen = tuple(sys.argv[1:]) or WHOLE_TEXTS
    for (source, flags, how), module in patterns().items():
        if not module.startswith(chosen):
            continue
        print(json.dumps({"module": module, "pattern": source}), flush=True)
        text, growth = slow_text(re.compile(source, flags), how)
        if text:
            print(json.dumps({"module": module, "pattern": source, "text": text[:60], "growth": growth}), flush=True)
    print(json.dumps({"module": "all", "pattern": ""}))


if __name__ == "__main__":
    main()
