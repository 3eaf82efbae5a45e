"""Looks for texts in every byte of an index: proof that what was removed has left no trace, or where it still is."""

import json
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.store.codec import restored
from kraq_dspy.asset.store.own_files import require_own
from kraq_dspy.asset.store.states import current_home
from kraq_dspy.errors import IndexStateError

_COMPRESSED = re.compile(rb"\xff(?=\x78\x5e)")  # how `codec.compressed` begins, also in pages that are free
_UNTIL = {
    "catalogue.db": "until the entry is removed: kraq catalogue remove",
    "instructed.db": "until they are made again: kraq precompute",
    "raptor.json": "until the tree is made again: kraq precompute --raptor",
    "k2rag.kraq": "until the corpus is summarised again: kraq precompute --k2rag",
    "draft": "until the change is finished: kraq resume",
}


@dataclass(frozen=True, slots=True)
class Trace:
    """A file of an index that holds some of the texts. `where` names the table, for a database."""

    file: str
    where: str
    texts: tuple[str, ...]
    until: str


def find_traces(path: str | Path, texts: Sequence[str]) -> list[Trace]:
    """Where any of the `texts` is in the folder of an index: as it is, escaped as JSON, or compressed.

    Files are read as bytes, with pages of databases that are free, and every value of every table is read besides.
    Raises IndexStateError for a folder that is no index.

    >>> find_traces("docs.kraq", ["Ada lived in London."])
    []
    """
    root = Path(path)
    require_own(root)
    forms = {text: {text.encode("utf-8", "replace"), *_escaped(text)} for text in texts if text.strip()}
    current = current_home(root)
    traces = []
    for file in sorted(file for file in root.rglob("*") if file.is_file()):
        content = file.read_bytes()
        places = {"": _held(forms, [content, *_inflated(content)])}
        if content.startswith(b"SQLite format 3\0"):
            places |= {table: _held(forms, values) for table, values in _tables(file)}
            told = set().union(*(held for table, held in places.items() if table))
            places["pages that are free"] = places.pop("") - told
        for where, held in places.items():
            if held:
                name = file.relative_to(root).as_posix()
                traces.append(Trace(name, where, tuple(sorted(held)), _until(file.relative_to(root), current, root)))
    return traces


def _escaped(text: str) -> Iterator[bytes]:
    for ensure_ascii in (True, False):
        yield json.dumps(text, ensure_ascii=ensure_ascii)[1:-1].encode("utf-8", "replace")


def _held(forms: dict[str, set[bytes]], contents: Iterable[bytes]) -> set[str]:
    held: set[str] = set()
    for content in contents:
        held.update(text for text, each in forms.items() if text not in held and any(form in content for form in each))
    return held


def _inflated(content: bytes) -> Iterator[bytes]:
    """What was compressed and lies in the content, as far as it can be read."""
    for match in _COMPRESSED.finditer(content):
        try:
            yield zlib.decompressobj().decompress(content[match.end() : match.end() + (1 << 20)], 1 << 24)
        except zlib.error:
            continue


def _tables(file: Path) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The values of each table as bytes, decompressed where they are compressed."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                yield name, _values(connection.execute(f'SELECT * FROM "{name}"'))
    except sqlite3.Error as error:
        raise IndexStateError(f"{str(file)!r} cannot be read: {error}.") from error


def _values(rows: Iterable[tuple[object, ...]]) -> Iterator[bytes]:
    for row in rows:
        for value in row:
            if isinstance(value, bytes):
                try:
                    yield restored(value).encode("utf-8", "surrogatepass")
                except ValueError:  # numbers
                    yield value
            elif isinstance(value, str):
                yield value.encode("utf-8", "surrogatepass")


def _until(file: Path, current: Path, root: Path) -> str:
    for name, until in _UNTIL.items():
        if name in file.parts:
            return until
    if file.parts[0] == "states" and not (root / file).is_relative_to(current):
        return "until the last process that reads this former state has closed it"
    return "as long as it is part of the index: another document says it too, or a model said it of one"
