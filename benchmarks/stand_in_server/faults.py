"""Chooses which request fails and how, by seed, text and attempt, so that the order of arrival has no say."""

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import Any

from stand_in_server.passage import hash_64, hash_unit

FAULTS = ("429", "500", "timeout", "malformed", "empty")


@dataclass
class Knobs:
    latency_ms: float = 0.0  # fixed delay of each chat call
    embed_latency_ms: float = 0.0  # fixed delay of each embedding call
    slots: int = 0  # chat calls served at once; 0 is without limit
    rate_429: float = 0.0  # chances of a fault at each attempt
    rate_500: float = 0.0
    rate_timeout: float = 0.0
    rate_malformed: float = 0.0
    rate_empty: float = 0.0
    context_tokens: int = 0  # longer prompts (letters / 4) get the 400 that vLLM gives; 0 is off
    timeout_s: float = 30.0  # how long a timeout hangs before the socket is closed
    retry_after: float = 1.0  # seconds in the header of a 429
    seed: int = 0
    dim: int = 384  # of embeddings

    def set(self, name: str, value: Any) -> None:
        """Takes a value as JSON or the command line has it. Raises KeyError for a name that is none of these."""
        types = {field.name: field.type for field in dataclasses.fields(self)}
        kind = types[name]
        assert isinstance(kind, type)
        setattr(self, name, kind(value))


def next_fault(request: str, attempts: Counter[str], knobs: Knobs) -> str | None:
    """The fault of this attempt at a request, if any; counts the attempt."""
    attempt = attempts[request]
    attempts[request] += 1
    place, total = hash_unit(knobs.seed, request, attempt), 0.0
    for fault in FAULTS:
        total += getattr(knobs, f"rate_{fault}")
        if place < total:
            return fault
    return None


def mangled(text: str, request: str, attempts: int) -> str:
    """The reply, spoilt: cut off, wrapped in talk, or talk alone."""
    mode = hash_64("mangle", request, attempts) % 3
    if mode == 0:
        return text[: int(len(text) * 0.6)]
    if mode == 1:
        return f"Sure! Here is the result:\n```json\n{text}\n```\nLet me know if you need more."
    return "I could not find anything that matches the requested format in this passage."
