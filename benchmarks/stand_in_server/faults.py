"""Chooses which request fails and how, by seed, text and attempt, so that the order of arrival has no say."""

from collections import Counter

from stand_in_server.knobs import Knobs
from stand_in_server.passage import hash_64, hash_unit

FAULTS = ("429", "500", "503", "timeout", "malformed", "empty")


def next_fault(request: str, kind: str, attempts: Counter[str], knobs: Knobs) -> str | None:
    """The fault of this attempt at a request, if any; counts the attempt."""
    attempt = attempts[request]
    attempts[request] += 1
    if knobs.fault_kinds and not kind.startswith(tuple(knobs.fault_kinds.split(","))):
        return None
    place, total = hash_unit(knobs.seed, request, attempt), 0.0
    for fault in FAULTS:
        total += getattr(knobs, f"rate_{fault}")
        if place < total:
            return fault
    return None


def mangled(text: str, request: str, attempts: int) -> tuple[str, str]:
    """How a reply is spoilt, and the spoilt reply: cut off, wrapped in talk, or talk alone."""
    mode = ("truncate", "fence", "prose")[hash_64("mangle", request, attempts) % 3]
    if mode == "truncate":
        return mode, text[: int(len(text) * 0.6)]
    if mode == "fence":
        return mode, f"Sure! Here is the result:\n```json\n{text}\n```\nLet me know if you need more."
    return mode, "I could not find anything that matches the requested format in this passage."
