"""Follows the brackets and quotes of a JSON value or Python literal that may break off in the middle."""

import re
from collections.abc import Iterator

_TORN = "torn"
_SIGN = re.compile(r"""["'\[\]{}:,]""")
_END_OF_QUOTE = {quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*{quote}", re.DOTALL) for quote in ("'", '"')}


def without_torn_end(body: str) -> str:
    """JSON or a Python literal that breaks off, ended after its last complete item; other text as it is.

    Complete is what a list holds whole, and what the outermost object holds whole. A text that breaks off in the
    outermost object keeps what there is of it.
    """
    closers: list[str] = []
    is_value, end, ending = False, 0, ""  # of the part that is complete: where it ends, and what closes it
    for place, sign in _signs(body):
        if sign in "[{":
            closers.append("]" if sign == "[" else "}")
            is_value = False
            continue
        if sign in "]}":
            closers = closers[:-1]
            if not closers:
                return body
            is_value = closers[-1] == "}"
        elif sign == ":":
            is_value = True
        elif sign == _TORN:
            if closers == ["}"] and is_value:
                return f"{body.rstrip(chr(92))}{body[place]}}}"
            break
        if sign != ":" and ((closers == ["}"] and is_value) or closers[-1:] == ["]"]):
            end, ending = place + (sign != ","), "".join(reversed(closers))
        is_value = is_value and sign != ","
    return body[:end] + ending if ending else body


def without_torn_text(body: str) -> str:
    """JSON that breaks off in a quoted text, ended before it."""
    return next((body[:place] for place, sign in _signs(body) if sign == _TORN), body)


def end_of_value(body: str) -> int | None:
    """Where the bracket that begins `body` closes; None: never."""
    depth = 0
    for place, sign in _signs(body):
        depth += (sign in "[{") - (sign in "]}")
        if depth == 0:
            return place + 1
    return None


def _signs(body: str) -> Iterator[tuple[int, str]]:
    """Brackets, colons and commas outside quoted texts, and the last quote of each; _TORN at the first quote of a text
    that does not end."""
    place = 0
    while (found := _SIGN.search(body, place)) is not None:
        place = found.end()
        sign = found.group()
        if sign not in _END_OF_QUOTE:
            yield place - 1, sign
        elif sign == '"' or _before(body, place - 1) in "[{,: \n":
            end = _END_OF_QUOTE[sign].match(body, place)
            if end is None:
                yield place - 1, _TORN
                return
            place = end.end()
            yield place - 1, sign


def _before(body: str, place: int) -> str:
    """The character before `place`; "" at the beginning, and for one behind a backslash."""
    first = place - 1
    while first > 0 and body[first - 1] == "\\":
        first -= 1
    return "" if place == 0 or (place - 1 - first) % 2 else body[place - 1]
