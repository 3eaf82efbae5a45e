"""Reads a reply that names its fields at the beginning of lines, in place of the markers that were asked for.

rationale: The passage says where she was born.
response: Rome
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_FENCE = re.compile(r"\s*```(\w+)[ \t]*\n(.*?)\n?```\s*", re.DOTALL)
_TYPES = ("str", "string", "text", "output")


def unmarked(reply: str, fields: Mapping[str, Any]) -> dict[str, str]:
    """Text by field name; empty where neither form is there."""
    fence = _FENCE.fullmatch(reply)
    if fence and list(fields.values()) == [str]:
        [name] = fields
        return {name: fence[2]} if fence[1].casefold() in (name.casefold(), *_TYPES) and fence[2].strip() else {}
    return named_lines(fence[2] if fence else reply, fields)


def named_lines(reply: str, names: Iterable[str]) -> dict[str, str]:
    """Text by field name; empty unless the reply begins with the first field and has every one, once and in order.

    A name stands at the beginning of a line, before a colon or alone on it; anything less is prose.
    """
    names = list(names)
    pattern = "|".join(map(re.escape, names))
    line = re.compile(rf"^[ \t>*_`\"#-]*({pattern})[*_`\"]*[ \t]*(?::|$)[*_`]*", re.MULTILINE | re.IGNORECASE)
    places = list(line.finditer(reply))
    if [place[1].casefold() for place in places] != [name.casefold() for name in names]:
        return {}
    if reply[: places[0].start()].strip():
        return {}
    ends = [*(place.start() for place in places[1:]), len(reply)]
    texts = [reply[place.end() : end].strip() for place, end in zip(places, ends, strict=True)]
    return dict(zip(names, texts, strict=True)) if all(texts) else {}
