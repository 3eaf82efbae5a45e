"""Checks arguments, and says what is wrong in one line of the user's words."""

import difflib
import math
from collections.abc import Iterable
from functools import cache
from numbers import Real
from typing import Any

from pydantic import TypeAdapter


@cache
def type_adapter(kind: Any) -> TypeAdapter[Any]:
    """What checks, reads and writes values of a type; to make one costs more than to use it."""
    return TypeAdapter(kind)


def require_counts(of: str = "", **counts: int) -> None:
    """Raises TypeError for a count that is no whole number, ValueError for one below 1; both name it."""
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool):
            raise TypeError(
                f"{name} is {count!r:.80} ({type(count).__name__}); expected a whole number{of and ' of '}{of}."
            )
        if count < 1:
            raise ValueError(f"{name} is {count}; expected 1 or more{of and ' '}{of}.")


def require_numbers(**numbers: float) -> None:
    """Raises TypeError for what is no number; the message names it."""
    for name, number in numbers.items():
        if not isinstance(number, Real) or isinstance(number, bool):  # NumPy's too
            raise TypeError(f"{name} is {number!r:.80} ({type(number).__name__}); expected a number.")


def require_between(least: float, most: float, expected: str, /, **numbers: float) -> None:
    """Raises TypeError for what is no number, ValueError for one out of the range; both name it."""
    require_numbers(**numbers)
    for name, number in numbers.items():
        if not least <= number <= most:
            raise ValueError(f"{name} is {number}; expected {expected}.")


def require_share(of: str, /, **shares: float) -> None:
    """As `require_between`, for a number above 0 and at most 1."""
    require_between(math.ulp(0.0), 1, f"{of}, above 0 and at most 1", **shares)


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: "did you mean 'tokens'?", or all that are known."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}."
