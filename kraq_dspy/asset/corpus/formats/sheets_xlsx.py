"""Reads the sheets of a workbook of Excel (xlsx; ECMA-376, part 1, section 18), cell by cell as the file lists them."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError
from kraq_dspy.asset.corpus.formats.number_formats import BUILT_IN, shown
from kraq_dspy.asset.corpus.formats.raised import on_the_line
from kraq_dspy.asset.corpus.formats.rows import damaged
from kraq_dspy.asset.corpus.formats.sheets import Merged, Sheet, TextLimit, on_one_line
from kraq_dspy.asset.corpus.formats.zipped import Parts, local_name

_REFERENCE = re.compile(r"\$?([A-Z]{1,4})\$?(\d{1,8})")
_TRUE = ("1", "true")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_NOT_READ = {"xl/charts/chart": "chart", "xl/comments": "comment part", "xl/media/": "picture"}


def read_xlsx(parts: Parts, limit: TextLimit) -> tuple[Sequence[Sheet], list[str]]:
    """The sheets in the order of their tabs, and what else the workbook has that is not read."""
    try:
        return _Workbook(parts, limit).sheets(), parts.not_read(_NOT_READ)
    except (ElementTree.ParseError, ValueError, IndexError) as error:
        raise UnreadableTextError(damaged(error).reason) from error


@dataclass(frozen=True, slots=True)
class _Style:
    """How cells show their value: the code of their number format, and whether they strike it out."""

    format: str = "General"
    strikes: bool = False


@dataclass(frozen=True, slots=True)
class _String:
    """The text of a cell that is not struck out, and how many letters are."""

    text: str
    n_struck: int = 0


class _Workbook:
    def __init__(self, parts: Parts, limit: TextLimit) -> None:
        self._parts = parts
        self._limit = limit
        self._path = parts.main("xl/workbook.xml")
        self._book = ElementTree.fromstring(parts.read(self._path) or b"<none/>")
        properties = next((each for each in self._book if local_name(each) == "workbookPr"), None)
        self._from_1904 = properties is not None and properties.get("date1904", "") in _TRUE
        self._relations = parts.relations(self._path)
        self._strings = self._shared_strings()
        self._styles = self._styles_of_cells()

    def sheets(self) -> list[Sheet]:
        listed = [each for each in self._book.iter() if local_name(each) == "sheet"]
        if not listed:
            raise UnreadableTextError("The file is damaged: it names no sheets. Open and save it again.")
        sheets = []
        for each in listed:
            relation = next((value for name, value in each.attrib.items() if name.endswith("}id")), "")
            kind, part = self._relations.get(relation, ("", ""))
            sheet = Sheet(each.get("name", ""), is_hidden=each.get("state", "visible") != "visible")
            if kind == "worksheet":
                self._read(part, sheet)
            sheets.append(sheet)
        return sheets

    def _part(self, kind: str) -> bytes:
        part = next((part for each, part in self._relations.values() if each == kind), "")
        return self._parts.read(part)

    def _shared_strings(self) -> list[_String]:
        data = self._part("sharedStrings")
        return [_string(item) for item in ElementTree.fromstring(data)] if data else []

    def _styles_of_cells(self) -> list[_Style]:
        data = self._part("styles")
        if not data:
            return []
        styles = ElementTree.fromstring(data)
        codes: dict[int, str] = dict(BUILT_IN)
        for each in styles.iter():
            if local_name(each) == "numFmt":
                codes[int(each.get("numFmtId", "0"))] = each.get("formatCode", "")
        fonts = [_strikes(font) for font in next((each for each in styles if local_name(each) == "fonts"), ())]
        cells = next((each for each in styles if local_name(each) == "cellXfs"), ())
        return [
            _Style(
                codes.get(int(each.get("numFmtId", "0")), "General"),
                strikes=int(each.get("fontId", "0")) < len(fonts) and fonts[int(each.get("fontId", "0"))],
            )
            for each in cells
        ]

    def _read(self, part: str, sheet: Sheet) -> None:
        row = 0
        parents: list[ElementTree.Element] = []
        events = ElementTree.iterparse(io.BytesIO(self._parts.read(part)), events=("start", "end"))
        for event, element in events:
            name = local_name(element)
            if event == "start":
                parents.append(element)
                if name == "row":
                    row = int(element.get("r", row + 1))
                    if _is_hidden_row(element):
                        sheet.hidden_rows.add(row)
                continue

            parents.pop()
            if name == "row":
                self._take_row(element, row, sheet)
                parents[-1].remove(element)  # a sheet is not held as a tree
            elif name == "col" and _is_hidden_column(element):
                sheet.hidden_columns.append((int(element.get("min", "1")), int(element.get("max", "1"))))
            elif name == "mergeCell":
                sheet.merged.extend(_merged(element.get("ref", "")))

    def _take_row(self, element: ElementTree.Element, row: int, sheet: Sheet) -> None:
        cells: dict[int, str] = {}
        column = 0
        for each in element:
            if local_name(each) != "c":
                continue
            place = _place(each.get("r", ""))
            column = place[1] if place else column + 1
            text = self._text_of(each, sheet)
            if text:
                self._limit.add(len(text))
                cells[column] = text
        if cells:
            sheet.cells[row] = cells

    def _text_of(self, element: ElementTree.Element, sheet: Sheet) -> str:
        """The shown text of a cell, "" where it is struck out; the sheet counts that, and formulas without a value."""
        inside = {local_name(child): child for child in element}
        kind, number = element.get("t", "n"), int(element.get("s", "0"))
        style = self._styles[number] if number < len(self._styles) else _Style()
        stored = inside["v"].text if "v" in inside else None

        if "is" in inside:  # a string of its own
            written = _string(inside["is"])
        elif stored is None:
            formula = inside["f"].text if "f" in inside else ""
            sheet.n_formulas += "f" in inside
            written = _String(f"={formula}" if formula else "")
        elif kind == "s":
            written = self._strings[int(stored)]
        else:
            written = _String(self._value(stored, kind, style.format))

        sheet.n_struck += written.n_struck
        text = on_one_line(written.text)
        if style.strikes:
            sheet.n_struck += len(text)
            return ""
        return text

    def _value(self, stored: str, kind: str, code: str) -> str:
        if kind == "b":
            return "TRUE" if stored.strip() in _TRUE else "FALSE"
        if kind == "d":
            return stored.removesuffix("T00:00:00")
        if kind != "n":
            return _unescaped(stored)
        if not stored.strip():
            return ""
        return shown(float(stored), code, from_1904=self._from_1904)


def _string(item: ElementTree.Element) -> _String:
    """The text of a string, without the readings of its signs."""
    runs: list[tuple[str, int]] = []
    n_struck = 0
    for child in item:
        if local_name(child) == "t":
            runs.append((child.text or "", 0))
        elif local_name(child) == "r":
            text = "".join(each.text or "" for each in child if local_name(each) == "t")
            fonts = [each for each in child if local_name(each) == "rPr"]
            if any(map(_strikes, fonts)):
                n_struck += len(text)
            else:
                runs.append((text, sum(map(_level, fonts))))
    return _String(_unescaped(on_the_line(runs)), n_struck)


def _level(font: ElementTree.Element) -> int:
    """1 for raised letters, -1 for lowered ones."""
    aligned = next((each.get("val", "") for each in font if local_name(each) == "vertAlign"), "")
    return {"superscript": 1, "subscript": -1}.get(aligned, 0)


def _strikes(font: ElementTree.Element) -> bool:
    return any(local_name(each) == "strike" and each.get("val", "1") in _TRUE for each in font)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


def _is_hidden_row(row: ElementTree.Element) -> bool:
    is_flat = row.get("customHeight") in _TRUE and float(row.get("ht", "1")) == 0
    return row.get("hidden") in _TRUE or is_flat


def _is_hidden_column(column: ElementTree.Element) -> bool:
    return column.get("hidden") in _TRUE or float(column.get("width", "1")) == 0


def _merged(reference: str) -> list[Merged]:
    """The cells of "A1:B2" as one; none for what is no such reference."""
    corners = [_place(corner) for corner in reference.split(":")[:2]]
    if len(corners) < 2 or corners[0] is None or corners[1] is None:
        return []
    first, last = corners[0], corners[1]
    return [Merged((first[0], last[0]), (first[1], last[1]))]


def _place(reference: str) -> tuple[int, int] | None:
    """Row and column of "B12", from 1."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return None
    column = 0
    for letter in match[1]:
        column = 26 * column + ord(letter) - ord("A") + 1
    return int(match[2]), column
