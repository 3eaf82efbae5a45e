"""Reads the text of a PDF's page by where its characters stand.

Raised and lowered characters are written on the line. Stretches of a line come in the order of the file: columns that
it holds one after the other are read so.
"""

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kraq_dspy.asset.corpus.formats.raised import on_the_line

_GUTTER = 1.0  # of a line's height: a gap from which on a line goes on as another stretch
_WORD_GAP, _RAISED_GAP = 0.1, 0.35  # of a line's height: a gap that is a space where PDFium sees one
_OFF_LINE = 0.08  # of a line's height: how far off a raised or lowered character is at least
_NEXT_LINE = 0.7  # of a line's height: how far off a character of another line is
_SMALLER = 0.87  # height of a raised character against that of the line, at most
_WORD_BREAKS = {0x02: "-", 0xFFFE: "-", 0xAD: "-"}
"""How PDFium marks a hyphen at a line's end."""


@dataclass(frozen=True, slots=True)
class _Character:
    """Where it stands along its line, from `start` to `end`, and how far `up` the line's foot is; its `height` with
    leading. `is_seen` says that PDFium only sees it between others, as spaces that the file does not hold.
    """

    text: str
    start: float
    end: float
    up: float
    height: float
    angle: int  # degrees, of its line
    is_seen: bool = False


@dataclass(slots=True)
class _Stretch:
    """A part of a line without a wide gap in it."""

    text: str
    start: float
    end: float
    up: float
    height: float


@dataclass(slots=True)
class _Run:
    """Characters of a line that stand equally high: 0 on it, 1 raised, -1 lowered."""

    level: int
    text: str


@dataclass(slots=True)
class _Line:
    """A stretch of a line while it is gathered."""

    start: float
    end: float
    up: float
    height: float
    angle: int
    runs: list[_Run] = field(default_factory=list)

    def add(self, text: str, level: int) -> None:
        if self.runs and self.runs[-1].level == level:
            self.runs[-1].text += text
        else:
            self.runs.append(_Run(level, text))

    def written(self) -> _Stretch:
        """Write on the line what is raised or lowered."""
        text = on_the_line([(run.text, run.level) for run in self.runs])
        return _Stretch(text.strip(), self.start, self.end, self.up, self.height)


def page_text(page: Any) -> str:
    """The text of a page of pypdfium2, a line for each line."""
    text_page = page.get_textpage()
    try:
        stretches = list(_stretches(_characters(text_page)))
    finally:
        text_page.close()
    return "\n".join(" ".join(stretch.text for stretch in row) for row in _rows(stretches))


def _characters(text_page: Any) -> Iterator[_Character]:
    """Yield those that the file holds, in its order, and the spaces that PDFium sees between
    them."""
    import pypdfium2.raw as pdfium

    x, y, box = ctypes.c_double(), ctypes.c_double(), pdfium.FS_RECTF()
    for place in range(text_page.count_chars()):
        code = pdfium.FPDFText_GetUnicode(text_page, place)
        if code == 0:
            continue
        pdfium.FPDFText_GetCharOrigin(text_page, place, x, y)
        pdfium.FPDFText_GetLooseCharBox(text_page, place, box)
        angle = round(math.degrees(pdfium.FPDFText_GetCharAngle(text_page, place))) % 360
        text = _WORD_BREAKS.get(code) or chr(code)
        is_seen = pdfium.FPDFText_IsGenerated(text_page, place) == 1
        yield _character(text, x.value, y.value, box, angle, is_seen=is_seen)


def _character(text: str, x: float, y: float, box: Any, angle: int, *, is_seen: bool) -> _Character:
    width, height = box.right - box.left, box.top - box.bottom
    if angle == 0:
        return _Character(text, box.left, box.right, y, height, 0, is_seen)
    turned = math.radians(angle)
    start = x * math.cos(turned) + y * math.sin(turned)
    up = y * math.cos(turned) - x * math.sin(turned)
    is_upright = angle % 180 < 45 or angle % 180 > 135
    advance, tall = (width, height) if is_upright else (height, width)
    return _Character(text, start, start + advance, up, tall, angle, is_seen)


def _stretches(characters: Iterator[_Character]) -> Iterator[_Stretch]:
    line: _Line | None = None
    space = ""  # what waits before the next character: one of the file, or one that PDFium sees
    for character in characters:
        if character.text.isspace():
            space = "seen" if character.is_seen and space != "held" else "held"
            continue

        if line is None or _begins_another(line, character):
            if line is not None:
                yield line.written()
            line = _Line(character.start, character.start, character.up, character.height, character.angle)
            space = ""

        gap = abs(character.start - line.end)
        level = _level(line, character)
        is_word_gap = gap > (_RAISED_GAP if level else _WORD_GAP) * line.height
        if line.runs and (space == "held" or (space and is_word_gap)):
            line.add(" ", level if line.runs[-1].level == level else 0)
        line.add(character.text, level)
        line.start, line.end = min(line.start, character.start), max(character.end, character.start)
        space = ""

    if line is not None:
        yield line.written()


def _begins_another(line: _Line, character: _Character) -> bool:
    """Whether a character is of another line, or of another stretch of the same, than those before it."""
    if character.angle != line.angle:
        return True
    height = max(line.height, character.height) or 1.0
    if abs(character.up - line.up) > _NEXT_LINE * height:
        return True
    gap = character.start - line.end
    return gap > _GUTTER * height or gap < -3 * height


def _level(line: _Line, character: _Character) -> int:
    """Tells whether a character is raised (1), lowered (-1) or on its line (0), which a larger one may correct."""
    off = character.up - line.up
    if abs(off) <= _OFF_LINE * line.height:
        return 0
    if character.height < _SMALLER * line.height:
        return 1 if off > 0 else -1
    if line.height < _SMALLER * character.height:  # what came before is the raised: a note's own number
        for run in line.runs:
            run.level = 1 if off < 0 else -1
    line.up, line.height = character.up, max(line.height, character.height)
    return 0


def _rows(stretches: Sequence[_Stretch]) -> list[list[_Stretch]]:
    """Stretches that follow each other in the file and stand equally high, from left to right."""
    rows: list[list[_Stretch]] = []
    for stretch in stretches:
        if not stretch.text:
            continue
        before = rows[-1][-1] if rows else None
        if before and abs(stretch.up - before.up) <= _OFF_LINE * stretch.height and stretch.start >= before.end:
            rows[-1].append(stretch)
        else:
            rows.append([stretch])
    return rows
