"""Checks the arguments of constructors, and says what would be right: for people who call the library from Python."""

import difflib
from collections.abc import Iterable


def require_counts(of: str = "", **counts: int) -> None:
    """Raises TypeError for a count that is no whole number, ValueError for one below 1; both name it."""
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool):
            raise TypeError(
                f"{name} is {count!r:.80} ({type(count).__name__}); expected a whole number{of and ' of '}{of}."
            )
        if count < 1:
            raise ValueError(f"{name} is {count}; expected 1 or more{of and ' '}{of}.")


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: "did you mean 'tokens'?", or all that are known."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}."
