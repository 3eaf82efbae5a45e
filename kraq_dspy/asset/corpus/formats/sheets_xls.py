"""Reads the sheets of a workbook of Excel 97 to 2003 (xls) through xlrd (extra `formats`)."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError
from kraq_dspy.asset.corpus.formats.number_formats import shown
from kraq_dspy.asset.corpus.formats.rows import damaged
from kraq_dspy.asset.corpus.formats.sheets import Merged, Sheet, TextLimit, on_one_line
from kraq_dspy.errors import import_extra

_COMPOUND = bytes.fromhex("d0cf11e0a1b11ae1")
_PROTECTED = "EncryptedPackage".encode("utf-16-le")


def read_xls(path: Path, limit: TextLimit) -> tuple[Sequence[Sheet], list[str]]:
    """The sheets in the order of their tabs. Rows and columns count from 0."""
    xlrd = import_extra("xlrd", "formats", "Reading xls")
    data = path.read_bytes()
    if data.startswith(_COMPOUND) and _PROTECTED in data:
        raise UnreadableTextError("The file is protected by a password. Save it without one.")
    try:
        book = xlrd.open_workbook(file_contents=data, formatting_info=True, ragged_rows=True, logfile=io.StringIO())
        return [_sheet(xlrd, book, sheet, limit) for sheet in book.sheets()], []
    except UnreadableTextError:
        raise
    except Exception as error:
        raise UnreadableTextError(damaged(error).reason) from error


def _sheet(xlrd: Any, book: Any, source: Any, limit: TextLimit) -> Sheet:
    sheet = Sheet(source.name, is_hidden=source.visibility != 0)
    sheet.hidden_rows = {row for row, info in source.rowinfo_map.items() if info.hidden}
    sheet.hidden_columns = [(column, column) for column, info in source.colinfo_map.items() if info.hidden]
    for first, end, left, right in source.merged_cells:
        sheet.merged.append(Merged((first, end - 1), (left, right - 1)))

    for row in range(source.nrows):
        cells: dict[int, str] = {}
        for column, cell in enumerate(source.row(row)):
            text = on_one_line(_written(xlrd, book, cell))
            if text:
                limit.add(len(text))
                cells[column] = text
        if cells:
            sheet.cells[row] = cells
    return sheet


def _written(xlrd: Any, book: Any, cell: Any) -> str:
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return "TRUE" if cell.value else "FALSE"
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, "#N/A"))
    if cell.ctype in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
        code = book.format_map[book.xf_list[cell.xf_index].format_key].format_str
        return shown(cell.value, code, from_1904=bool(book.datemode))
    return str(cell.value)
