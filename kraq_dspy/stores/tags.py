"""Turns payloads into tags, so that one keyword index serves every filter on every field and type.

A payload {"year": 1999, "lang": ["en", "fr"]} becomes the tags `"year"=1999`, `"lang"="en"`, `"lang"="fr"`. Engines
differ in what equality means for booleans and floats and in how a field name with a dot is written; a tag is a string.
"""

import json
from collections.abc import Mapping
from typing import Any

from kraq_dspy.records import content_id

_LONGEST = 200  # characters; longer tags are kept as their hash


def tags_of(payload: Mapping[str, Any]) -> list[str]:
    """One tag for each field, and one for each item of a list. Equal numbers have equal tags: 1 and 1.0."""
    return [_tag(key, item) for key, value in payload.items() for item in _items(value)]


def alternatives(filters: Mapping[str, Any] | None) -> list[list[str]]:
    """For each field of `filters`, the tags of which a point must have one."""
    return [[_tag(key, item) for item in _items(value)] for key, value in (filters or {}).items()]


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


def _tag(key: str, value: Any) -> str:
    if not isinstance(value, (str, int, float)):
        raise ValueError(f"Cannot filter {key!r} by {value!r}; expected str, int, float, bool, or a list of them.")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    tag = f"{json.dumps(key)}={json.dumps(value)}"
    return tag if len(tag) <= _LONGEST else f"#{content_id(tag)}"
