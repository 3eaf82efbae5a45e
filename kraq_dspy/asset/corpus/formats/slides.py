"""Reads slides (pptx; extra `formats`): what each slide shows, from top to bottom, and what its speaker's notes say."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from kraq_dspy.asset.corpus.chunk import PAGE_BREAK
from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError, refuses_unreadable
from kraq_dspy.asset.corpus.formats.docx_math import linear
from kraq_dspy.asset.corpus.formats.number_formats import shown
from kraq_dspy.asset.corpus.formats.raised import on_the_line
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row, damaged, shows_nothing
from kraq_dspy.asset.corpus.formats.sheets import on_one_line
from kraq_dspy.asset.corpus.formats.told_rows import told_rows
from kraq_dspy.asset.corpus.formats.zipped import opened_zip
from kraq_dspy.asset.corpus.normalise import is_blank, normalised
from kraq_dspy.errors import counted, import_extra
from kraq_dspy.records import Heading

_DEEPEST = 10  # groups in groups
_FALSE, _TRUE = ("0", "false"), ("1", "true")  # as XML writes them
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath"


@refuses_unreadable
def read_pptx(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """A page for each slide, its title as a heading; then texts, tables and numbers of charts in the order in which
    they stand on the slide, then the speaker's notes. Hidden slides and shapes and text struck out are left out, and
    counted."""
    pptx = import_extra("pptx", "formats", "Reading pptx")
    with opened_zip(path, settings) as parts:
        comments = parts.not_read({"ppt/comments/": "comment part"})
    deck = _Deck()
    try:
        pages = [deck.page(slide) for slide in pptx.Presentation(str(path)).slides]
    except UnreadableTextError:
        raise
    except Exception as error:  # noqa: BLE001  python-pptx raises whatever a damaged file makes its code raise
        yield damaged(error)
        return

    text, headings = "", []
    for number, lines in enumerate(pages):
        text += PAGE_BREAK if number else ""
        if lines and lines[0]:
            headings.append(Heading(len(text), 1, lines[0]))
        text += "\n".join(filter(None, lines))

    notes = deck.notes() + comments
    text = text.rstrip()
    if is_blank(text):
        yield shows_nothing(notes)
        return
    title = headings[0].text if headings else normalised(path.stem)
    metadata = {"pages": len(pages)}
    yield Row(text, title=title, metadata=metadata, headings=tuple(headings), left_out=tuple(notes))


@dataclass(slots=True)
class _Deck:
    """Reads slides, and counts what is left out."""

    n_hidden_slides: int = 0
    n_hidden_shapes: int = 0
    n_struck: int = 0
    not_read: dict[str, int] = field(default_factory=dict)

    def page(self, slide: Any) -> list[str]:
        """The lines of a slide, the title first, "" if there is none; no lines of a slide that is hidden."""
        if slide._element.get("show", "1") in _FALSE:
            self.n_hidden_slides += 1
            return []

        title = slide.shapes.title
        is_titled = title is not None and title.has_text_frame and not _is_hidden(title)
        lines = [" ".join(filter(None, self._lines_of_text(title.text_frame))) if is_titled else ""]
        for shape in self._shown(slide.shapes):
            if title is None or shape._element is not title._element:  # ids may stand twice on a slide
                lines += self._lines(shape)

        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            lines += self._lines_of_text(slide.notes_slide.notes_text_frame)
        return lines

    def notes(self) -> list[str]:
        """What was left out, in words."""
        counts = {"hidden slide": self.n_hidden_slides, "hidden shape": self.n_hidden_shapes}
        notes = [counted(count, what) for what, count in counts.items() if count]
        if self.n_struck:
            notes.append(f"{counted(self.n_struck, 'letter')} of text struck out")
        return notes + [f"{counted(count, what)}, not read" for what, count in self.not_read.items()]

    def _shown(self, shapes: Any, depth: int = 0) -> Iterator[Any]:
        """The shapes that are shown, in reading order, those of a group where the group stands; hidden ones are
        counted."""
        seen = [shape for shape in shapes if not _is_hidden(shape)]
        self.n_hidden_shapes += len(shapes) - len(seen)
        for shape in _in_reading_order(seen):
            if hasattr(shape, "shapes") and depth < _DEEPEST:
                yield from self._shown(shape.shapes, depth + 1)
            else:
                yield shape

    def _lines(self, shape: Any) -> Iterator[str]:
        if getattr(shape, "has_table", False):
            yield from self._lines_of_table(shape.table)
        elif getattr(shape, "has_chart", False):
            yield from _lines_of_chart(shape.chart)
        elif shape.has_text_frame:
            yield from self._lines_of_text(shape.text_frame)
        elif diagram := _diagram(shape):
            yield from diagram
        else:
            what = "picture" if hasattr(shape, "image") else "drawing" if shape._element.tag.endswith("Frame") else ""
            if what:
                self.not_read[what] = self.not_read.get(what, 0) + 1

    def _lines_of_text(self, frame: Any) -> list[str]:
        return [on_one_line(self._text(paragraph._p)) for paragraph in frame.paragraphs]

    def _text(self, element: Any) -> str:
        """The text of a paragraph, with raised and lowered letters on the line."""
        runs: list[tuple[str, int]] = []
        for child in element:
            name = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else ""
            if name in ("r", "fld"):
                text, properties = _run(child)
                if properties.get("strike", "noStrike") != "noStrike":
                    self.n_struck += len(text)
                else:
                    runs.append((text, _level(properties)))
            elif name == "br":
                runs.append((" ", 0))
            elif name in ("AlternateContent", "Choice", "m"):
                equations = [linear(each) for each in child.iter(_MATH)]
                runs.append((" ".join(equations), 0))
        return on_the_line(_joined(runs))

    def _lines_of_table(self, table: Any) -> list[str]:
        rows = list(self._rows_of_table(table))
        return told_rows(rows) or ["\t".join(texts).rstrip("\t") for texts in rows if any(texts)]

    def _rows_of_table(self, table: Any) -> Iterator[list[str]]:
        merged: dict[int, tuple[str, int]] = {}  # by column: a merged cell's text, and the first row behind it
        for number, row in enumerate(table.rows):
            texts = []
            for column, cell in enumerate(row.cells):
                text = " ".join(self._lines_of_text(cell.text_frame)).strip()
                if cell.is_merge_origin and cell.span_height > 1:
                    merged[column] = (text, number + cell.span_height)
                elif cell.is_spanned and column in merged and number < merged[column][1]:
                    text = merged[column][0]
                texts.append(text)
            yield texts


def _run(run: Any) -> tuple[str, Mapping[str, str]]:
    """The text of a run, and its properties."""
    text = "".join(each.text or "" for each in run if str(each.tag).endswith("}t"))
    properties: Mapping[str, str] = next((each.attrib for each in run if str(each.tag).endswith("}rPr")), {})
    return text, properties


def _level(properties: Mapping[str, str]) -> int:
    """1 for a raised run, -1 for a lowered one, 0 on the line. A baseline is 30000, or "30%"."""
    baseline = properties.get("baseline", "0").removesuffix("%")
    return 0 if not _is_number(baseline) else (float(baseline) > 0) - (float(baseline) < 0)


def _joined(runs: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Runs of one level, which programs cut at will, as one."""
    return [("".join(text for text, _ in group), level) for level, group in groupby(runs, key=itemgetter(1))]


def _is_hidden(shape: Any) -> bool:
    names = shape._element.xpath("./*/p:cNvPr")
    return bool(names) and names[0].get("hidden", "0") in _TRUE


def _in_reading_order(shapes: Sequence[Any]) -> list[Any]:
    """From top to bottom; from left to right where a shape begins beside the upper half of another."""
    rows: list[list[Any]] = []
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        first, top = rows[-1][0] if rows else None, shape.top or 0
        if first is not None and (top < (first.top or 0) + (first.height or 0) / 2 or top == (first.top or 0)):
            rows[-1].append(shape)
        else:
            rows.append([shape])
    return [shape for row in rows for shape in sorted(row, key=lambda shape: shape.left or 0)]


def _labels_of(plot: Any) -> list[str]:
    labels = [on_one_line(" ".join(map(str, path))) for path in plot.categories.flattened_labels]
    code = _format_of(plot, "c:cat")
    if code == "General":
        return labels
    return [shown(float(label), code) if _is_number(label) else label for label in labels]


def _lines_of_chart(chart: Any) -> Iterator[str]:
    """The title, then a line for each category with its value in each series, as the chart's own table keeps them."""
    if chart.has_title and chart.chart_title.has_text_frame:
        yield on_one_line(chart.chart_title.text_frame.text)
    for plot in chart.plots:
        labels = _labels_of(plot)
        values: dict[str, list[str]] = {label: [] for label in labels}
        for series in plot.series:
            name, code = on_one_line(series.name or ""), _format_of(series, "c:val | .//c:yVal")
            points = series._element.xpath("./c:xVal//c:pt")
            places = {int(point.get("idx")): point.xpath("string(./c:v)") for point in points}
            for place, number in enumerate(series.values):
                if number is not None:
                    label = places.get(place) or (labels[place] if place < len(labels) else str(place + 1))
                    values.setdefault(label, []).append(f"{name}: {shown(number, code)}".removeprefix(": "))
        for label, written in values.items():
            if written:
                yield f"{label}: {'; '.join(written)}"


def _format_of(part: Any, values: str) -> str:
    codes = part._element.xpath(f".//{values}")
    return next((code.text for each in codes for code in each.xpath(".//c:formatCode")), None) or "General"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _diagram(shape: Any) -> list[str]:
    """The texts of a diagram (SmartArt), which stand in a part of their own."""
    lines: list[str] = []
    for reference in shape._element.iter("{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"):
        target = next((value for name, value in reference.attrib.items() if name.endswith("}dm")), "")
        tree = ElementTree.fromstring(shape.part.related_part(target).blob)
        for paragraph in tree.iter("{http://schemas.openxmlformats.org/drawingml/2006/main}p"):
            runs = [_run(each) for each in paragraph if each.tag.endswith(("}r", "}fld"))]
            lines.append(on_one_line(on_the_line(_joined([(text, _level(properties)) for text, properties in runs]))))
    return [line for line in lines if line]
