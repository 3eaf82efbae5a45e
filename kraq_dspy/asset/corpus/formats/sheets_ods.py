"""Reads the sheets of an OpenDocument spreadsheet (ods; OpenDocument 1.3, part 3, section 9).

A file of this kind writes every cell as it is shown, and a cell or row that repeats once, with how often.
"""

from collections.abc import Iterator, Sequence, Set
from xml.etree import ElementTree

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError
from kraq_dspy.asset.corpus.formats.rows import damaged
from kraq_dspy.asset.corpus.formats.sheets import Merged, Sheet, TextLimit, on_one_line
from kraq_dspy.asset.corpus.formats.zipped import Parts, local_name

_CELLS = ("table-cell", "covered-table-cell")
_NOT_TEXT = ("annotation", "annotation-end", "frame", "custom-shape", "tracked-changes", "note", "ruby-text")
_INVISIBLE = ("collapse", "filter")
_HOLDERS = (
    "table-row-group",
    "table-rows",
    "table-header-rows",
    "table-column-group",
    "table-columns",
    "table-header-columns",
)


def read_ods(parts: Parts, limit: TextLimit) -> tuple[Sequence[Sheet], list[str]]:
    """The sheets in the order of their tabs. Rows and columns count from 0."""
    try:
        content = ElementTree.fromstring(parts.read("content.xml"))
        hidden_styles = {
            _attribute(style, "name")
            for style in _named(content, "style")
            if any(_attribute(each, "display") == "false" for each in style)
        }
        tables = [each for book in _named(content, "spreadsheet") for each in book if local_name(each) == "table"]
        return [_sheet(table, hidden_styles, limit) for table in tables], []
    except (ElementTree.ParseError, ValueError) as error:
        raise UnreadableTextError(damaged(error).reason) from error


def _named(content: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    return (each for each in content.iter() if local_name(each) == name)


def _sheet(table: ElementTree.Element, hidden_styles: Set[str], limit: TextLimit) -> Sheet:
    sheet = Sheet(_attribute(table, "name"), is_hidden=_attribute(table, "style-name") in hidden_styles)
    row = column = 0
    for element, is_hidden in _columns_and_rows(table):
        if local_name(element) == "table-column":
            first, column = column, column + _repeats(element, "number-columns-repeated")
            sheet.hidden_columns += [(first, column - 1)] if is_hidden else []
            continue

        repeats = _repeats(element, "number-rows-repeated")
        if cells := _cells(element, row, sheet, limit):
            limit.add(sum(map(len, cells.values())) * (repeats - 1))
            rows_here = range(row, row + repeats)
            sheet.cells.update((each, dict(cells)) for each in rows_here)
            sheet.hidden_rows.update(rows_here if is_hidden else ())
        row += repeats
    return sheet


def _columns_and_rows(
    parent: ElementTree.Element, *, is_hidden: bool = False
) -> Iterator[tuple[ElementTree.Element, bool]]:
    """Those of a table and of its groups, in their order, and whether they are hidden."""
    for element in parent:
        hides = (
            is_hidden or _attribute(element, "display") == "false" or _attribute(element, "visibility") in _INVISIBLE
        )
        if local_name(element) in ("table-column", "table-row"):
            yield element, hides
        elif local_name(element) in _HOLDERS:
            yield from _columns_and_rows(element, is_hidden=hides)


def _cells(element: ElementTree.Element, row: int, sheet: Sheet, limit: TextLimit) -> dict[int, str]:
    """The texts of a row by column; the sheet gets its merged cells."""
    cells: dict[int, str] = {}
    column = 0
    for each in element:
        if local_name(each) not in _CELLS:
            continue
        repeats = _repeats(each, "number-columns-repeated")
        text = "" if local_name(each) == "covered-table-cell" else _written(each, sheet)
        if text:
            limit.add(len(text) * repeats)
            cells.update(dict.fromkeys(range(column, column + repeats), text))
        rows, columns = _repeats(each, "number-rows-spanned"), _repeats(each, "number-columns-spanned")
        if rows > 1 or columns > 1:
            sheet.merged.append(Merged((row, row + rows - 1), (column, column + columns - 1)))
        column += repeats
    return cells


def _written(cell: ElementTree.Element, sheet: Sheet) -> str:
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
