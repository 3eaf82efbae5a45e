"""Reads JSON lines, plain or gzip-compressed, line by line; and small JSON files, whole."""

import codecs
import json
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from kraq_dspy.asset.corpus.formats.decode import (
    UnreadableTextError,
    decode,
    read_limited,
    read_lines,
    refuses_unreadable,
)
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.formats.zipped import DAMAGED_GZIP, Unpacked
from kraq_dspy.asset.scope import ACL

_FIRST = 1_000_000  # bytes of a line by which the kind of a file is told
_LABELS = re.compile(r'"acl"\s{0,10}:')


@refuses_unreadable
def read_json_lines(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """An object a line; empty lines are passed over. Keys are line numbers from 1. A file that is one list is read as
    such."""
    is_compressed = path.name.lower().endswith(".gz")
    if not is_compressed and _begins(path) == "list":
        yield from _whole(path, settings)
        return
    yield from _lines(path, settings, is_compressed=is_compressed)


@refuses_unreadable
def read_json(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """A list of objects, with their places from 1 as keys, or one object. Lines of objects are read as such."""
    yield from _lines(path, settings) if _begins(path) == "lines" else _whole(path, settings)


def _begins(path: Path) -> str:
    """Return what a JSON file is by its first lines: "list", "lines" (of objects), else ""."""
    with path.open("rb") as stream:
        first = stream.readline(_FIRST).removeprefix(codecs.BOM_UTF8).strip()
        if first.startswith(b"["):
            return "list"
        if not first.startswith(b"{") or not stream.readline(_FIRST).lstrip().startswith(b"{"):
            return ""
    try:
        return "lines" if isinstance(json.loads(first), dict) else ""
    except (ValueError, RecursionError):
        return ""


def _lines(path: Path, settings: ReadSettings, *, is_compressed: bool = False) -> Iterator[Row | BadRow]:
    number = 0
    with path.open("rb") as file:
        stream = cast(BufferedReader, Unpacked(file, settings)) if is_compressed else file
        try:
            for line in read_lines(stream, settings):
                number = line.number
                if line.problem:
                    yield BadRow(line.problem, str(number))
                elif line.text.strip():
                    yield _row(line.text, f"Line {number}", str(number), settings)
        except DAMAGED_GZIP as error:
            yield BadRow(f"The gzip data is damaged after line {number} ({error}). Compress or download it again.")


def _whole(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    content = _parse(decode(read_limited(path, settings), settings))
    if isinstance(content, dict):
        yield settings.row(content, "")
        return
    if not isinstance(content, list):
        yield BadRow(f"The file holds a {type(content).__name__}; expected a list of objects, or one object.")
        return

    for number, item in enumerate(content, start=1):
        if isinstance(item, dict):
            yield settings.row(item, str(number))
        else:
            yield BadRow(f"Item {number} is a {type(item).__name__}; expected an object.", str(number))


def _row(text: str, where: str, key: str, settings: ReadSettings) -> Row | BadRow:
    try:
        values = _parse(text)
    except UnreadableTextError as error:
        return BadRow(f"{where}: {error}", key)
    if not isinstance(values, dict):
        return BadRow(f"{where} is a {type(values).__name__}; expected an object with named columns.", key)
    row = settings.row(values, key)
    return BadRow(f"{where}: {row.reason}", key) if isinstance(row, BadRow) else row


def _parse(text: str) -> Any:
    """The value of a JSON text. Raises UnreadableTextError."""
    text = text.removeprefix("\ufeff")
    try:
        if len(_LABELS.findall(text)) > 1:  # JSON keeps the last of two values with one name
            return json.loads(text, object_pairs_hook=_with_labels_once)
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise UnreadableTextError(f"not valid JSON at {place} ({error.msg}). Fix it or take it out.") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise UnreadableTextError(f"JSON that cannot be read ({error}). Fix it or take it out.") from None


def _with_labels_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these names and values. Raises UnreadableTextError if it says twice who may read it."""
    values = dict(pairs)
    if [name for name, _ in pairs].count(ACL) > 1:
        raise UnreadableTextError(f"An object has the name {ACL!r} twice, which says who may read it. Keep one.")
    return values
