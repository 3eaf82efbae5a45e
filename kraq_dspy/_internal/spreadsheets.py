"""Writes text into tables that people open in a spreadsheet, so that none of it is a formula there."""

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r\n|%\uff1d\uff0b\uff0d\uff20]")
"""How a cell begins that spreadsheets may take for a formula, or that has apostrophes before such a beginning."""


def cell_of(text: str) -> str:
    """The text with an apostrophe before what a spreadsheet would take for a formula, and run. A bare carriage return,
    which would end the row, becomes a line's end.

    >>> cell_of("=cmd|' /C calc'!A1"), cell_of("1 + 1")
    ("'=cmd|' /C calc'!A1", '1 + 1')
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if _FORMULA.match(text) else text


def text_of(cell: str) -> str:
    """The inverse of `cell_of`.

    >>> text_of("'=A1"), text_of("'tis")
    ('=A1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell[1:]) else cell
