"""Turns records into JSON text and back, exactly: tuples stay tuples, and any Python string survives.

Python strings may hold lone surrogates (an undecodable byte of a file name becomes one), which neither UTF-8 nor SQLite
can store as text. `storable` turns such a string into bytes (UTF-8 with "surrogatepass"), which SQLite keeps as a blob,
and `restored` turns them back; every other string is stored as the text that it is. What is written once and
seldom read takes a sixth of the room as `compressed`.
"""

import dataclasses
import json
import re
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import orjson

from kraq_dspy.records import Document

R = TypeVar("R")

_COMPRESSED = b"\xff"  # begins no text in UTF-8
_LEVEL = 3  # higher ones take longer and save little
_LARGE_INTEGER = re.compile(r"[0-9]{19}")  # may have more than 64 bits


_UNLABELLED = ',"labels":[]}'
"""How a document without labels ends. It is not written, so that the records of an index that declares none stay as
they were before there were labels."""


def dumps(value: Any) -> str:
    """Compact JSON of a record, or of any JSON value that may hold records. Raises TypeError for other objects."""
    text = _dumps(value)
    if isinstance(value, Document) and text.endswith(_UNLABELLED):
        return f"{text[: -len(_UNLABELLED)]}}}"
    return text


def _dumps(value: Any) -> str:
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # lone surrogates, large integers, other mappings than dict, or what no record may hold
        text = ""
    if text and "null" not in text:  # which orjson also writes for an infinite number
        return text
    return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))


def loads(kind: type[R], text: str) -> R:
    """The record of type `kind` that `dumps` wrote. Raises ValueError when `text` is not one."""
    value = _value(text)
    try:
        return cast(R, _decoder(cast(Any, kind))(value))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"This is not a {kind.__name__}: {text[:80]!r}") from error


def _value(text: str) -> Any:
    if _LARGE_INTEGER.search(text):  # orjson makes a rounded number of it
        return json.loads(text)

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # lone surrogates, an infinite number
        return json.loads(text)


def storable(text: Any) -> Any:
    """Return what SQLite is to keep for `text`; different strings give different values. What is no
    string stays as it is."""
    if not isinstance(text, str) or text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def compressed(text: str) -> bytes:
    """Return what SQLite is to keep for text that nobody compares or searches."""
    return _COMPRESSED + zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)


def restored(value: str | bytes) -> str:
    """The inverse of `storable`, and of `compressed`. Raises ValueError for what neither of them made."""
    if isinstance(value, str):
        return value
    try:
        plain = zlib.decompress(value[1:]) if value.startswith(_COMPRESSED) else value
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return plain.decode("utf-8", "surrogatepass")


def checksum(*values: str | bytes) -> int:
    """CRC-32 of stored values, one after the other."""
    crc = 0
    for value in values:
        crc = zlib.crc32(value if isinstance(value, bytes) else value.encode(), crc)
    return crc


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"A record cannot hold {value!r} ({type(value).__name__}); expected str, int, float or bool.")


@cache
def _decoder(hint: Any) -> Callable[[Any], Any]:
    """Return what turns the JSON value of a field annotated with `hint` into the field's value."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        changed = {name: decode for name in hints if (decode := _decoder(hints[name])) is not _as_it_is}

        def decode_record(value: Any) -> Any:
            for name, decode in changed.items():
                if name in value:
                    value[name] = decode(value[name])
            return hint(**value)

        return decode_record
    if get_origin(hint) is tuple:
        decode_item = _decoder(get_args(hint)[0])
        return tuple if decode_item is _as_it_is else lambda value: tuple(map(decode_item, value))
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return value
