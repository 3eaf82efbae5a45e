"""Lays out the tables of web pages: a line for each row, every value in its column.

A cell that spans rows or columns is written where it counts, an empty one keeps its place.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kraq_dspy.asset.corpus.formats.told_rows import told_rows

CELL = "\ue009"
"""Between the cells of a row, until the lines are written."""

_COLUMNS = 200  # of a table in which spans are followed
_REPEATED = 200  # characters of a cell that is written again in the rows or columns that it spans
_LONG = 1000  # characters of a cell with paragraphs that make a table one of layout
_BLANK = re.compile(r"[ \t\n\f\r]+")
_HEADING_MARKS = re.compile("[\ue000-\ue006]")


@dataclass(slots=True)
class Cell:
    """What a page writes into a cell, in pieces, and how far it reaches; `rows` is 0 for down to the last row."""

    columns: int = 1
    rows: int = 1
    is_header: bool = False
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The cell's text stands on one line, however many paragraphs it has."""
        return _BLANK.sub(" ", _HEADING_MARKS.sub("", "".join(self.pieces))).strip(" ")


class Table:
    """Gathers rows of cells. `around` takes what stands in the table but in no cell, such as its caption."""

    def __init__(self, *, is_layout: bool = False) -> None:
        self.around: list[str] = []
        self.is_layout = is_layout
        self._rows: list[list[Cell]] = []

    def begin_row(self) -> None:
        self._rows.append([])

    def begin_cell(self, columns: str, rows: str, *, is_header: bool) -> Cell:
        """Begins one whose attributes colspan and rowspan are these."""
        if not self._rows:
            self.begin_row()
        cell = Cell(_span(columns, 1) or 1, _span(rows, 1), is_header)
        self._rows[-1].append(cell)
        return cell

    def pieces(self) -> list[str]:
        """The table as pieces of text: a line for each row, or for a table of layout what its cells hold, in order."""
        if self._lays_out():
            return [*self.around, *self._in_order()]
        rows = list(self._grid())
        if lines := told_rows(rows):
            return [*self.around, *(f"\n{line}\n" for line in lines)]
        return [*self.around, *(f"\n{CELL.join(row)}\n" for row in rows if any(row))]

    def _lays_out(self) -> bool:
        """Whether the table only places things on the page. One column has no headings to keep."""
        if self.is_layout or all(len(row) <= 1 for row in self._rows):
            return True
        return any(_is_long(cell) for row in self._rows for cell in row)

    def _in_order(self) -> Iterator[str]:
        for row in self._rows:
            yield "\n"
            for cell in row:
                yield "\t"
                yield from cell.pieces
                yield "\t"
            yield "\n"

    def _grid(self) -> Iterator[list[str]]:
        """The texts of each row, one for each column."""
        n_columns = min(_COLUMNS, max(map(len, self._rows), default=0))
        from_above: dict[int, tuple[str, int]] = {}  # by column: what reaches down to it, and for how many rows more
        for row in self._rows:
            is_whole_row = len(row) == 1 and not from_above
            texts: list[str] = []
            for cell in row:
                _take_down(texts, from_above)
                _write(texts, from_above, cell, 1 if is_whole_row else min(cell.columns, n_columns))
            _take_down(texts, from_above)
            yield texts


def _write(texts: list[str], from_above: dict[int, tuple[str, int]], cell: Cell, columns: int) -> None:
    """A header counts for each of its columns, so it is written in each; a value once."""
    text = cell.text
    again = text if len(text) <= _REPEATED else ""
    for place in range(columns):
        shown = text if place == 0 else again if cell.is_header else ""
        if cell.rows != 1 and len(texts) < _COLUMNS:
            from_above[len(texts)] = (again if shown else "", cell.rows - 1)
        texts.append(shown)


def _take_down(texts: list[str], from_above: dict[int, tuple[str, int]]) -> None:
    """Fills the next columns as far as cells of earlier rows reach down to them."""
    while len(texts) in from_above:
        column = len(texts)
        text, rows_left = from_above[column]
        if rows_left == 1:
            del from_above[column]
        else:
            from_above[column] = (text, rows_left - 1)
        texts.append(text)


def _is_long(cell: Cell) -> bool:
    return sum(map(len, cell.pieces)) > _LONG and "\n" in "".join(cell.pieces).strip()


def _span(value: str, default: int) -> int:
    digits = re.match(r"\s*(\d{1,5})", value)
    return int(digits[1]) if digits else default
