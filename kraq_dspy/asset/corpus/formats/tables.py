"""Reads CSV and TSV, row by row, and parquet, a batch at a time.

In CSV the first row names the columns; every value stays the string that it is.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.formats.decode import Line, UnreadableTextError, decode, read_lines, refuses_unreadable
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.scope import ACL
from kraq_dspy.errors import counted, needs

DELIMITERS = (",", "\t", ";", "|")
_SAID = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
NO_ROWS = "The table has no rows."
MISSING_IDS = ("nan", "NaN")  # how pandas writes a missing value as a string


@refuses_unreadable
def read_csv(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """Separated by commas, or by the tab, semicolon or bar that makes the first row name the text column."""
    return _read(path, settings, ",")


@refuses_unreadable
def read_tsv(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    return _read(path, settings, "\t")


def _read(path: Path, settings: ReadSettings, delimiter: str) -> Iterator[Row | BadRow]:
    # The csv module's limit on a field is one for the whole process and starts at 128 KiB: raise it, never lower it.
    csv.field_size_limit(max(csv.field_size_limit(), settings.max_bytes))
    with path.open("rb") as stream:
        lines = _CsvLines(read_lines(stream, settings))
        first = next((line for line in lines if line.strip() or lines.problem), "")
        if separator_line := _SAID.fullmatch(first.strip(" \r\n")):  # Excel's own line before the first row
            delimiter, first = separator_line[1], next(lines, "")
        else:
            delimiter = _delimiter(first, delimiter, settings)

        columns, problem = settings.own_names(_header(first, delimiter))
        if lines.problem:
            yield BadRow(f"The first row cannot be read: {lines.problem}")
        elif problem := settings.missing(columns) or problem:
            yield BadRow(problem)
        else:
            yield from _rows(lines, columns, delimiter, settings)


def _rows(lines: "_CsvLines", columns: list[str], delimiter: str, settings: ReadSettings) -> Iterator[Row | BadRow]:
    # Strict, so that a quote that is never closed is an error and not one enormous row.
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    own = settings.own(columns)
    number = 0
    while True:
        lines.begin_row()
        cells: list[str] = []
        problem = ""
        try:
            cells = next(reader)
        except StopIteration:
            if not number:
                yield BadRow(NO_ROWS)
            return
        except csv.Error as error:
            problem = f"{error}. Check its quotes: one that is not closed takes the lines behind it along."

        problem = lines.problem or problem
        if not any(map(str.strip, cells)) and not problem:
            continue  # an empty line, or an empty row of a spreadsheet

        cells = _without_empty_end(cells, len(columns))
        number += 1
        key, where = str(number), f"Row {number} ({lines.place})"
        if problem:
            yield BadRow(f"{where}: {problem}", key)
        elif len(cells) > len(columns):
            yield BadRow(
                f"{where} has {counted(len(cells), 'cell')} for {counted(len(columns), 'column')}. Quote cells "
                "that hold marks.",
                key,
            )
        else:
            values = dict(zip(columns, [*cells, *[""] * (len(columns) - len(cells))], strict=True))
            if values.get(own.id) in MISSING_IDS:
                values[own.id] = ""
            row = settings.row(values, key)
            yield BadRow(f"{where}: {row.reason}", key) if isinstance(row, BadRow) else row


def _without_empty_end(cells: list[str], n_columns: int) -> list[str]:
    """Leave out empty cells behind the last column, which spreadsheets leave."""
    while len(cells) > n_columns and not cells[-1].strip():
        cells.pop()
    return cells


def _delimiter(first: str, expected: str, settings: ReadSettings) -> str:
    """The mark that makes the first row name the text column; if none does, the one that makes most columns."""
    headers = {mark: _header(first, mark) for mark in (expected, *DELIMITERS)}
    most = max(headers, key=lambda mark: len(headers[mark]))
    return next((mark for mark, header in headers.items() if settings.is_header(header)), most)


def _header(line: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
    except csv.Error:
        return []


class _CsvLines:
    """The lines' text for the csv module, which wants the line ends; with the place of the row that is being read, and
    the first problem of its lines."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self._first = self._last = 0
        self.problem = ""

    def begin_row(self) -> None:
        self._first, self.problem = 0, ""

    @property
    def place(self) -> str:
        return f"line {self._first}" if self._first == self._last else f"lines {self._first} to {self._last}"

    def __iter__(self) -> "_CsvLines":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._first, self._last = self._first or line.number, line.number
        self.problem = self.problem or line.problem
        return line.text + "\n"


BATCH = 256  # rows


def read_parquet(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """Keys are row numbers from 1. Columns of bytes (images and the like) are not read, but for text without a type,
    as some writers leave it."""
    with needs("pyarrow", "parquet", f"{path.name!r}, a Parquet file,"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    number = 0
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            columns, names, problem = _columns_read(file.schema_arrow, settings)
            if problem:
                yield BadRow(problem)
                return
            for batch in file.iter_batches(batch_size=BATCH, columns=columns):
                for values in zip(*(_values_of(column, settings) for column in batch.columns), strict=True):
                    number += 1
                    key = str(number)
                    row = settings.row(dict(zip(names, values, strict=True)), key)
                    yield BadRow(f"Row {number}: {row.reason}", key) if isinstance(row, BadRow) else row
        if not number:
            yield BadRow(NO_ROWS)
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file system's own; Arrow's have no number
        yield BadRow(f"The Parquet file is damaged after row {number} ({str(error)[:200]}). Write it again.")


def _columns_read(schema: Any, settings: ReadSettings) -> tuple[list[str], list[str], str]:
    """The columns without those of bytes that the settings do not name, what they are called in a row, and what is
    wrong with them, or ""."""
    if missing := settings.missing(schema.names):
        return [], [], missing
    matter = settings.own(schema.names)
    named = (*matter.texts, matter.title, matter.id, settings.acl_column or ACL)
    columns = []
    for field in schema:
        if field.name in named or not _is_binary(field.type):
            columns.append(field.name)
    return columns, *settings.own_names(columns)


def _values_of(column: Any, settings: ReadSettings) -> list[Any]:
    """Python values. One that Python cannot hold, such as a time in nanoseconds, is the string that Arrow shows; what
    is no UTF-8 stays bytes, which are refused as a text and left out of the metadata."""
    import pyarrow as pa

    def text(value: bytes | None) -> str | bytes | None:
        try:
            return decode(value, settings) if value else "" if value == b"" else None
        except UnreadableTextError:
            return value

    def value_of(cell: Any) -> Any:
        try:
            return cell.as_py()
        except UnicodeDecodeError:
            return b""
        except (ValueError, OverflowError, ImportError):
            return cell.cast(pa.string()).as_py()

    if _is_binary(column.type):
        return list(map(text, column.to_pylist()))
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, ImportError):
        return list(map(value_of, column))


def _is_binary(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))
