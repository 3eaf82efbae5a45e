"""Reads CSV and TSV, row by row, and parquet, a batch at a time.

In CSV the first row names the columns; every value stays the string that it is.
"""

import csv
import re
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.formats.decode import Line, UnreadableTextError, decode, read_lines, refuses_unreadable
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row, row_of

DELIMITERS = (",", "\t", ";", "|")
_SAID = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
READ_AGAIN = 200_000_000  # characters of one file, at most, for the sake of quotes that nobody closed
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
        first = next(lines, "")
        while not first.strip() and not lines.problems and not lines.ended:
            first = next(lines, "")
        if said := _SAID.fullmatch(first.strip(" \r\n")):  # Excel's own line before the first row
            delimiter, first = said[1], next(lines, "")
        else:
            delimiter = _delimiter(first, delimiter, settings)
        columns, problem = settings.own_names(_header(first, delimiter))
        if lines.problems:
            yield BadRow(f"The first row cannot be read: {lines.problems[0]}")
        elif problem := settings.missing(columns) or problem:
            yield BadRow(problem)
        else:
            yield from _rows(lines, columns, delimiter, settings)


def _rows(lines: "_CsvLines", columns: list[str], delimiter: str, settings: ReadSettings) -> Iterator[Row | BadRow]:
    # Strict, so that a quote that is never closed is an error and not one enormous row.
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    number = again = 0
    while True:
        lines.begin_row()
        try:
            cells = next(reader)
            problem = ""
        except StopIteration:
            return
        except csv.Error as error:
            cells, problem = [], f"{error}. Check its quotes."
            if len(lines.of_row) > 1:  # a quote that nobody closed: only its own line is lost
                again += lines.read_again(lines.of_row[1:])
                reader = csv.reader(lines, delimiter=delimiter, strict=True)
                problem = f"{error}: it opens a quote and does not close it. Check its quotes."
        problem = lines.problems[0] if lines.problems else problem
        lines.problems.clear()
        if not cells and not problem:
            continue  # an empty line
        number += 1
        key = str(number)
        where = f"Row {number} (line {lines.of_row[0].number})"
        if again > READ_AGAIN:
            yield BadRow(f"{where}: too many rows open a quote and do not close it; the rest of the file is left.", key)
            return
        if problem:
            yield BadRow(f"{where}: {problem}", key)
        elif len(cells) > len(columns):
            yield BadRow(
                f"{where} has {len(cells)} cells for {len(columns)} columns. Quote cells that hold marks.", key
            )
        else:
            cells += [""] * (len(columns) - len(cells))
            row = row_of(_values(columns, cells, settings), key, settings)
            yield BadRow(f"{where}: {row.reason}", key) if isinstance(row, BadRow) else row


def _values(columns: list[str], cells: list[str], settings: ReadSettings) -> dict[str, str]:
    values = dict(zip(columns, cells, strict=True))
    if values.get(settings.id_column) in MISSING_IDS:
        values[settings.id_column] = ""
    return values


def _delimiter(first: str, expected: str, settings: ReadSettings) -> str:
    """The mark that makes the first row name the text column; where none does, the one that makes most columns."""
    marks = (expected, *DELIMITERS)
    headers = {mark: _header(first, mark) for mark in marks}
    most = max(marks, key=lambda mark: len(headers[mark]))
    return next((mark for mark in marks if settings.text_column in headers[mark]), most)


def _header(line: str, delimiter: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


class _CsvLines:
    """The lines' text for the csv module, which wants the line ends. Keeps the lines of the row that is being read, and
    their problems."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self.lines = lines
        self.of_row: list[Line] = []
        self.problems: list[str] = []
        self.ended = False
        self._waiting: deque[Line] = deque()

    def begin_row(self) -> None:
        self.of_row = []

    def read_again(self, lines: Sequence[Line]) -> int:
        """Give these once more, as the next ones; returns how many characters they have."""
        self._waiting.extendleft(reversed(lines))
        self.of_row = self.of_row[: len(self.of_row) - len(lines)]
        self.problems = [line.problem for line in self.of_row if line.problem]
        return sum(len(line.text) for line in lines)

    def __iter__(self) -> "_CsvLines":
        return self

    def __next__(self) -> str:
        line = self._waiting.popleft() if self._waiting else next(self.lines, None)
        if line is None:
            self.ended = True
            raise StopIteration
        self.of_row.append(line)
        if line.problem:
            self.problems.append(line.problem)
        return line.text + "\n"


BATCH = 256  # rows


def read_parquet(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """Keys are row numbers from 1. Columns of bytes (images and the like) are not read, but for text without a type,
    as some writers leave it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            if missing := settings.missing(file.schema_arrow.names):
                yield BadRow(missing)
                return
            own = (settings.text_column, settings.title_column, settings.id_column)
            fields = [field for field in file.schema_arrow if field.name in own or not _is_binary(field.type)]
            names, problem = settings.own_names([field.name for field in fields])
            if problem:
                yield BadRow(problem)
                return
            for batch in file.iter_batches(batch_size=BATCH, columns=[field.name for field in fields]):
                for values in zip(*(_column_values(column, settings) for column in batch.columns), strict=True):
                    number += 1
                    key = str(number)
                    row = row_of(dict(zip(names, values, strict=True)), key, settings)
                    yield BadRow(f"Row {number}: {row.reason}", key) if isinstance(row, BadRow) else row
        if not number:
            yield BadRow("The table has no rows.")
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the file system's own; Arrow's have no number
        yield BadRow(f"The Parquet file is damaged after row {number} ({str(error)[:200]}). Write it again.")


def _column_values(column: Any, settings: ReadSettings) -> list[Any]:
    """Python values. A value that Python cannot hold, such as a time in nanoseconds, is the string Arrow shows."""
    if _is_binary(column.type):
        return [_text(value, settings) for value in column.to_pylist()]
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError, ImportError):
        return [_value(cell) for cell in column]


def _text(value: bytes | None, settings: ReadSettings) -> str | bytes | None:
    if value is None:
        return None
    try:
        return decode(value, settings) if value else ""
    except UnreadableTextError:
        return value  # refused as a text


def _value(cell: Any) -> Any:
    import pyarrow as pa

    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return b""  # not UTF-8 in a column of strings: refused as a text, left out of the metadata
    except (ValueError, OverflowError, ImportError):
        try:
            return cell.cast(pa.string()).as_py()
        except pa.ArrowException:
            return None


def _is_binary(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))
