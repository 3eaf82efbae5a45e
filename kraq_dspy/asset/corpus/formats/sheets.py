"""Reads spreadsheets (xlsx, xls, ods): the cells that somebody sees, as they are shown, row by row.

Cells are held by row and column and never as a rectangle: one far cell costs one cell.
"""

import itertools
import zipfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError, read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.errors import counted
from kraq_dspy.records import Heading

_REPEATED = 200  # characters of a merged cell that is written again in the rows that it spans


@dataclass(frozen=True, slots=True)
class Merged:
    """A cell that spans others: first and last row, first and last column."""

    rows: tuple[int, int]
    columns: tuple[int, int]


@dataclass(slots=True)
class Sheet:
    """The cells of a sheet by row and column. `hidden_columns` are (first, last); `n_formulas` counts formulas of which
    the file keeps no value, whose cells hold their text, and `n_struck` letters that are struck out."""

    name: str
    is_hidden: bool = False
    cells: dict[int, dict[int, str]] = field(default_factory=dict)
    merged: list[Merged] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: list[tuple[int, int]] = field(default_factory=list)
    n_formulas: int = 0
    n_struck: int = 0


class TextLimit:
    """Counts the text of a file as it is read: few bytes can repeat a text very often."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._n_letters = 0

    def add(self, n_letters: int) -> None:
        """Raises UnreadableTextError once there are more letters than the limit."""
        self._n_letters += n_letters
        if self._n_letters > self._settings.max_bytes:
            raise UnreadableTextError(self._settings.too_large(self._n_letters, "The text of the first cells"))


@refuses_unreadable
def read_sheets(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """A heading for each sheet, a line for each row. Where the first row names the columns, each value has its name.

    Hidden rows, columns and sheets are left out, and counted. A merged cell stands in each row that it spans.
    """
    limit = TextLimit(settings)
    sheets, notes = _opened(path, settings, limit)

    text, headings = "", []
    for sheet in sheets:
        notes += _notes(sheet)
        lines = [] if sheet.is_hidden else list(_lines(sheet, limit))
        if not lines:
            continue
        name = on_one_line(sheet.name)
        headings.append(Heading(len(text), 1, name))
        text += "\n".join([name, *lines]) + "\n\n"

    if not headings:
        found = f" It holds {'; '.join(notes)}." if notes else ""
        yield BadRow(f"The file shows no text.{found} Show what is to be read, or take the file out.")
        return
    yield Row(text.rstrip("\n"), title=normalised(path.stem), headings=tuple(headings), left_out=tuple(notes))


def on_one_line(text: str) -> str:
    return " ".join(normalised(text).split())


def _opened(path: Path, settings: ReadSettings, limit: TextLimit) -> tuple[Sequence[Sheet], list[str]]:
    """The sheets, and what of the file is not read. The content tells the format, since names are often wrong."""
    from kraq_dspy.asset.corpus.formats.sheets_ods import read_ods
    from kraq_dspy.asset.corpus.formats.sheets_xls import read_xls
    from kraq_dspy.asset.corpus.formats.sheets_xlsx import read_xlsx
    from kraq_dspy.asset.corpus.formats.zipped import opened_zip

    read_limited(path, settings)
    if not zipfile.is_zipfile(path):
        return read_xls(path, limit)

    with opened_zip(path, settings) as parts:
        if "content.xml" in parts:
            return read_ods(parts, limit)
        if any(name.endswith("workbook.bin") for name in parts.names):
            raise UnreadableTextError(
                "The file is a binary workbook (xlsb), which kraq does not read. Save it as xlsx."
            )
        return read_xlsx(parts, limit)


def _notes(sheet: Sheet) -> list[str]:
    """What of the sheet is left out, in words."""
    name = f"sheet {on_one_line(sheet.name)!r}"
    if sheet.is_hidden:
        return [f"{name}, which is hidden"] if sheet.cells else []
    columns = _hidden_columns(sheet)
    rows = [row for row in sheet.hidden_rows if row in sheet.cells]
    notes = []
    if rows:
        notes.append(f"{counted(len(rows), 'hidden row')} of {name}")
    if columns:
        notes.append(f"{counted(len(columns), 'hidden column')} of {name}")
    if sheet.n_formulas:
        notes.append(f"values of {counted(sheet.n_formulas, 'formula')} of {name}, which the file does not keep")
    if sheet.n_struck:
        notes.append(f"{counted(sheet.n_struck, 'letter')} of text struck out of {name}")
    return notes


def _lines(sheet: Sheet, limit: TextLimit) -> Iterator[str]:
    _repeat_merged(sheet, limit)
    hidden_columns = _hidden_columns(sheet)
    rows = {
        number: {column: text for column, text in cells.items() if column not in hidden_columns}
        for number, cells in sorted(sheet.cells.items())
        if number not in sheet.hidden_rows
    }
    rows = {number: cells for number, cells in rows.items() if any(cells.values())}
    columns = sorted({column for cells in rows.values() for column, text in cells.items() if text})
    waiting = list(rows)

    if len(columns) > 1:  # a title and the like above a table
        titles = list(itertools.takewhile(lambda number: sum(map(bool, rows[number].values())) == 1, waiting))
        below = waiting[len(titles) :]
        if titles and len(below) > 1 and _header(sheet, below[0], rows[below[0]], columns):
            yield from (next(filter(None, rows[number].values())) for number in titles)
            waiting = below

    header = _header(sheet, waiting[0], rows[waiting[0]], columns) if len(waiting) > 1 else None
    if header:
        if names := _header_below(sheet, header, rows, waiting):
            header, waiting = names, waiting[1:]
        waiting = waiting[1:]
    for number in waiting:
        line = _line(rows[number], columns, header)
        limit.add(len(line))
        yield line


def _line(cells: Mapping[int, str], columns: Sequence[int], header: Mapping[int, str] | None) -> str:
    if header:
        return "; ".join(f"{header[column]}: {cells[column]}" for column in columns if cells.get(column))
    return "\t".join(cells.get(column, "") for column in columns).rstrip("\t")


def _header(sheet: Sheet, number: int, cells: Mapping[int, str], columns: Sequence[int]) -> dict[int, str] | None:
    """The names of the columns, if this row holds one for each; a merged one is the name of each column below it."""
    named = {column: text for column, text in cells.items() if text}
    for merged in sheet.merged:
        if merged.rows[0] == number and merged.columns[0] in named:
            for column in columns:
                if merged.columns[0] < column <= merged.columns[1]:
                    named.setdefault(column, named[merged.columns[0]])
    if len(columns) < 2 or set(named) != set(columns) or any(map(_is_number, named.values())):
        return None
    return named


def _header_below(
    sheet: Sheet, header: Mapping[int, str], rows: Mapping[int, Mapping[int, str]], waiting: Sequence[int]
) -> dict[int, str]:
    """The names of the columns by the first two rows that wait, where the first has a name for several columns that the
    second tells apart: "Fares Adult"; {} if the second row is none of the header."""
    spanned = {
        column
        for merged in sheet.merged
        if merged.rows == (waiting[0], waiting[0]) and merged.columns[1] > merged.columns[0]
        for column in header
        if merged.columns[0] <= column <= merged.columns[1]
    }
    below = {column: text for column, text in rows[waiting[1]].items() if text}
    names_each = all(column in below and below[column] != header[column] for column in spanned)
    is_else = any(text != header.get(column) for column, text in below.items() if column not in spanned)
    if not spanned or len(waiting) < 3 or not names_each or is_else or any(map(_is_number, below.values())):
        return {}
    return {column: f"{name} {below[column]}" if column in spanned else name for column, name in header.items()}


def _repeat_merged(sheet: Sheet, limit: TextLimit) -> None:
    """Writes a merged cell into each row that has other cells, where the one it stands in may be hidden."""
    spanning = [merged for merged in sheet.merged if merged.rows[1] > merged.rows[0]]
    in_order = sorted(sheet.cells) if spanning else []
    for merged in spanning:
        text = sheet.cells.get(merged.rows[0], {}).get(merged.columns[0], "")
        if not text or len(text) > _REPEATED:
            continue
        first = bisect_right(in_order, merged.rows[0])
        for number in in_order[first : bisect_right(in_order, merged.rows[1])]:
            limit.add(len(text))
            sheet.cells[number].setdefault(merged.columns[0], text)


def _hidden_columns(sheet: Sheet) -> set[int]:
    """Those that hold something."""
    if not sheet.hidden_columns:
        return set()
    columns = sorted({column for cells in sheet.cells.values() for column in cells})
    hidden: set[int] = set()
    next_place = 0
    for first, last in sorted(sheet.hidden_columns):
        next_place = max(next_place, bisect_left(columns, first))
        end = max(next_place, bisect_right(columns, last))
        hidden.update(columns[next_place:end])
        next_place = end
    return hidden


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("-", "", 1).isdigit()
