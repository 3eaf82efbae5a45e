"""Reads the sheets of an OpenDocument spreadsheet (ods; OpenDocument 1.3, part 3, section 9).

A file of this kind writes every cell as it is shown, and a cell or row that repeats once, with how often.
"""

import io
from collections.abc import Sequence
from xml.etree import ElementTree

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError
from kraq_dspy.asset.corpus.formats.rows import damaged
from kraq_dspy.asset.corpus.formats.sheets import Merged, Sheet, TextLimit, on_one_line
from kraq_dspy.asset.corpus.formats.zipped import Parts, local_name

_CELLS = ("table-cell", "covered-table-cell")
_NOT_TEXT = ("annotation", "annotation-end", "frame", "custom-shape", "tracked-changes", "note", "ruby-text")
_INVISIBLE = ("collapse", "filter")
_GROUPS = ("table-row-group", "table-column-group")


def read_ods(parts: Parts, limit: TextLimit) -> tuple[Sequence[Sheet], list[str]]:
    """The sheets in the order of their tabs. Rows and columns count from 0."""
    try:
        return _Reader(limit).sheets(parts.read("content.xml")), []
    except (ElementTree.ParseError, ValueError) as error:
        raise UnreadableTextError(damaged(error).reason) from error


class _Reader:
    def __init__(self, limit: TextLimit) -> None:
        self._limit = limit
        self._sheets: list[Sheet] = []
        self._style = ""
        self._hidden_styles: set[str] = set()
        self._n_hidden_groups = 0
        self._row = self._column = 0

    def sheets(self, content: bytes) -> list[Sheet]:
        parents: list[ElementTree.Element] = []
        for event, element in ElementTree.iterparse(io.BytesIO(content), events=("start", "end")):
            if event == "start":
                self._begin(element, parents)
                parents.append(element)
            else:
                parents.pop()
                self._end(element, parents)
        return self._sheets

    def _begin(self, element: ElementTree.Element, parents: Sequence[ElementTree.Element]) -> None:
        name = local_name(element)
        if name == "style":
            self._style = _attribute(element, "name")
        elif name == "table" and "table" not in map(local_name, parents):
            is_hidden = _attribute(element, "style-name") in self._hidden_styles
            self._sheets.append(Sheet(_attribute(element, "name"), is_hidden=is_hidden))
            self._row = self._column = 0
        elif name in _GROUPS:
            self._n_hidden_groups += _attribute(element, "display") == "false"

    def _end(self, element: ElementTree.Element, parents: Sequence[ElementTree.Element]) -> None:
        name, is_hidden = local_name(element), self._n_hidden_groups > 0
        if name == "table-properties" and _attribute(element, "display") == "false":
            self._hidden_styles.add(self._style)
        elif name in _GROUPS:
            self._n_hidden_groups -= _attribute(element, "display") == "false"
        elif name == "table-column" and self._sheets:
            self._take_columns(element, self._sheets[-1], is_hidden=is_hidden)
        elif name == "table-row" and self._sheets and "table-cell" not in map(local_name, parents):
            self._take_row(element, self._sheets[-1], is_hidden=is_hidden)
            parents[-1].remove(element)

    def _take_columns(self, element: ElementTree.Element, sheet: Sheet, *, is_hidden: bool) -> None:
        first = self._column
        self._column += _repeats(element, "number-columns-repeated")
        if is_hidden or _attribute(element, "visibility") in _INVISIBLE:
            sheet.hidden_columns.append((first, self._column - 1))

    def _take_row(self, element: ElementTree.Element, sheet: Sheet, *, is_hidden: bool) -> None:
        cells: dict[int, str] = {}
        column = 0
        for each in element:
            if local_name(each) not in _CELLS:
                continue
            repeats = _repeats(each, "number-columns-repeated")
            text = "" if each.tag.endswith("}covered-table-cell") else self._written(each, sheet)
            if text:
                self._limit.add(len(text) * repeats)
                cells.update(dict.fromkeys(range(column, column + repeats), text))
            rows, columns = _repeats(each, "number-rows-spanned"), _repeats(each, "number-columns-spanned")
            if rows > 1 or columns > 1:
                sheet.merged.append(Merged((self._row, self._row + rows - 1), (column, column + columns - 1)))
            column += repeats

        repeats = _repeats(element, "number-rows-repeated")
        if cells:
            self._limit.add(sum(map(len, cells.values())) * (repeats - 1))
            rows_here = range(self._row, self._row + repeats)
            sheet.cells.update((row, dict(cells)) for row in rows_here)
            if is_hidden or _attribute(element, "visibility") in _INVISIBLE:
                sheet.hidden_rows.update(rows_here)
        self._row += repeats

    def _written(self, cell: ElementTree.Element, sheet: Sheet) -> str:
        text = on_one_line("\n".join(_text(each) for each in cell if local_name(each) in ("p", "list")))
        if text:
            return text
        kinds = ("string-value", "date-value", "time-value", "boolean-value", "value")
        value = next((value for kind in kinds if (value := _attribute(cell, kind))), "")
        formula = _attribute(cell, "formula")
        has_value = bool(value) or _attribute(cell, "value-type") == "string"
        if formula and not has_value:
            sheet.n_formulas += 1
            return f"={formula.partition('=')[2]}"
        return on_one_line(value)


def _text(element: ElementTree.Element) -> str:
    pieces = [element.text or ""]
    for child in element:
        name = local_name(child)
        if name == "s":
            pieces.append(" ")
        elif name in ("tab", "line-break"):
            pieces.append("\n")
        elif name not in _NOT_TEXT:
            pieces.append(_text(child))
        pieces.append(child.tail or "")
    return "".join(pieces)


def _attribute(element: ElementTree.Element, name: str) -> str:
    return next((value for each, value in element.attrib.items() if each.rpartition("}")[2] == name), "")


def _repeats(element: ElementTree.Element, name: str) -> int:
    return max(1, int(_attribute(element, name) or "1"))
