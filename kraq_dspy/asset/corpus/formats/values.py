"""Reads the rows of a table as they are, whatever its columns: questions, which come in the same files as documents."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.formats.json_rows import read_json, read_json_lines
from kraq_dspy.asset.corpus.formats.packed import reader_named
from kraq_dspy.asset.corpus.formats.rows import BadRow, Reader, ReadSettings, Row
from kraq_dspy.asset.corpus.formats.tables import read_csv, read_parquet, read_tsv

READERS_OF_ROWS: dict[str, Reader] = {
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".jsonl.gz": read_json_lines,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".parquet": read_parquet,
}
"""By extension, the readers of files that are read row by row."""


@dataclass(frozen=True, slots=True)
class ValueSettings(ReadSettings):
    """`expected` are columns one of which the file is likely to have: by them the mark between cells is told."""

    expected: tuple[str, ...] = ()

    def missing(self, columns: Iterable[str]) -> str:
        return ""

    def is_header(self, columns: Iterable[str]) -> bool:
        return not {column.strip().lower() for column in columns}.isdisjoint(self.expected)

    def row(self, values: Mapping[str, Any], key: str) -> Row | BadRow:
        return Row("", key=key, values=values)


def holds_rows(name: str) -> bool:
    """Whether a file of this name is read row by row."""
    return reader_named(name, READERS_OF_ROWS) is not None


def read_values(path: Path, settings: ValueSettings) -> Iterator[Row | BadRow]:
    """Rows with their `values`, and those that cannot be read. Raises OSError."""
    reader = reader_named(path.name, READERS_OF_ROWS)
    assert reader is not None, "`holds_rows` was asked"
    yield from reader(path, settings)
