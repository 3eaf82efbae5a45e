"""Asks a step again whose answer cannot be used: with a temperature, since its likeliest words would be the same."""

from collections.abc import Iterator
from typing import Any

AGAIN = 2
"""How often a model is asked once more."""


def attempts(again: int = AGAIN) -> Iterator[dict[str, Any]]:
    """What a call takes beside its inputs, for the first one and for each further one."""
    yield {}
    for number in range(1, 1 + again):
        yield {"config": {"temperature": 1.0, "rollout_id": number}}
