"""Follows the brackets and quotes of a JSON value or Python literal that may break off in the middle."""

from collections.abc import Iterator

_TORN = "torn"


def without_torn_end(body: str) -> str:
    """JSON or a Python literal that breaks off, ended after its last complete item; other text as it is.

    Complete is what a list holds whole, and what the outermost object holds whole. A text that breaks off in the
    outermost object keeps what there is of it.
    """
    closers: list[str] = []
    is_value, kept = False, ""
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
            return f"{body.rstrip(chr(92))}{body[place]}}}" if closers == ["}"] and is_value else kept or body
        if sign != ":" and ((closers == ["}"] and is_value) or closers[-1:] == ["]"]):
            kept = body[: place + (sign != ",")] + "".join(reversed(closers))
        is_value = is_value and sign != ","
    return kept or body


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
    quote, opened, previous = "", 0, ""
    for place, letter in enumerate(body):
        if quote:
            if letter == quote and previous != "\\":
                quote = ""
                yield place, letter
        elif letter == '"' or (letter == "'" and previous in "[{,: \n"):
            quote, opened = letter, place
        elif letter in "[]{}:,":
            yield place, letter
        previous = "" if previous == "\\" else letter
    if quote:
        yield opened, _TORN
