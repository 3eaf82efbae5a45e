"""Reads files of office programs (extra `formats`): texts (docx), slides (pptx) and sheets (xlsx, xls, ods)."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.chunk import PAGE_BREAK
from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError, read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.html import page_row
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.normalise import is_blank, normalised
from kraq_dspy.errors import import_extra
from kraq_dspy.records import Heading

_NO_TEXT = "The file has no text; what it shows may be pictures. Save it as PDF and run it through OCR."


@refuses_unreadable
def read_docx(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """Headings, tables, lists and notes as those of a web page; the title is the first heading."""
    mammoth = import_extra("mammoth", "formats", "Reading docx")
    check_zip(path, settings)
    with path.open("rb") as stream:
        try:
            page = mammoth.convert_to_html(stream, convert_image=mammoth.images.img_element(lambda image: {})).value
        except Exception as error:  # noqa: BLE001  mammoth raises whatever a damaged file makes its code raise
            yield _damaged(error)
            return

    row = page_row(page, "")
    if row is None:
        yield BadRow(_NO_TEXT)
        return
    yield Row(row.text, title=_title(row.headings, path), headings=row.headings, linked=row.linked)


@refuses_unreadable
def read_pptx(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """A page for each slide, its title as a heading; tables row by row, then what the speaker's notes say."""
    pptx = import_extra("pptx", "formats", "Reading pptx")
    check_zip(path, settings)
    try:
        slides = [list(_lines_of_slide(slide)) for slide in pptx.Presentation(str(path)).slides]
    except Exception as error:  # noqa: BLE001  python-pptx raises whatever a damaged file makes its code raise
        yield _damaged(error)
        return

    text, headings = "", []
    for lines in slides:
        if text:
            text += PAGE_BREAK
        if lines and lines[0]:
            headings.append(Heading(len(text), 1, lines[0]))
        text += "\n".join(filter(None, lines))

    if is_blank(text):
        yield BadRow(_NO_TEXT)
        return
    yield Row(text, title=_title(headings, path), metadata={"pages": len(slides)}, headings=tuple(headings))


@refuses_unreadable
def read_sheets(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """A heading for each sheet, a line for each row. Where the first row names the columns, each value has its name."""
    calamine = import_extra("python_calamine", "formats", "Reading spreadsheets")
    if zipfile.is_zipfile(path):
        check_zip(path, settings)
    with path.open("rb") as stream:
        read_limited(stream, settings)
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
        sheets = [(name, book.get_sheet_by_name(name).to_python()) for name in book.sheet_names]
    except Exception as error:  # noqa: BLE001  calamine raises errors of several kinds
        yield _damaged(error)
        return

    text, headings = "", []
    for name, cells in sheets:
        lines = list(_lines_of_sheet(cells))
        if not lines:
            continue
        name = _written(name)
        headings.append(Heading(len(text), 1, name))
        text += "\n".join([name, *lines]) + "\n\n"

    if not headings:
        yield BadRow(_NO_TEXT)
        return
    yield Row(text.rstrip("\n"), title=normalised(path.stem), headings=tuple(headings))


def check_zip(path: Path, settings: ReadSettings) -> None:
    """Raises UnreadableTextError for what is no zip file, is too large, or unpacks to far more than its size."""
    with path.open("rb") as stream:
        size = len(read_limited(stream, settings))
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
    except zipfile.BadZipFile as error:
        raise UnreadableTextError(f"The file is damaged ({error}). Save it again, or take it out.") from error

    if unpacked > max(settings.max_bytes, size * settings.max_unpacked):
        raise UnreadableTextError(
            f"The file unpacks to more than {settings.max_unpacked:,} times its size. Raise max_unpacked in [corpus] "
            "of kraq.toml if that is right."
        )


def _lines_of_slide(slide: Any) -> Iterator[str]:
    """The title first, "" if there is none."""
    title = slide.shapes.title
    yield _written(title.text_frame.text) if title is not None and title.has_text_frame else ""
    for shape in _shapes(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if getattr(shape, "has_table", False):
            yield from _lines_of_table([[_written(cell.text) for cell in row.cells] for row in shape.table.rows])
        elif shape.has_text_frame:
            yield from (_written(paragraph.text) for paragraph in shape.text_frame.paragraphs)

    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        yield from map(_written, slide.notes_slide.notes_text_frame.text.split("\n"))


def _shapes(shapes: Any, depth: int = 0) -> Iterator[Any]:
    """Yield those in groups, too."""
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < 10:
            yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _lines_of_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in rows:
        if any(row):
            yield "\t".join(row).rstrip("\t")


def _lines_of_sheet(cells: Sequence[Sequence[Any]]) -> Iterator[str]:
    rows = [[_written(cell) for cell in row] for row in cells]
    rows = [row for row in rows if any(row)]
    header = rows[0] if rows else []
    names_columns = len(rows) > 1 and len(header) > 1 and all(header) and not any(map(_is_number, header))
    if not names_columns:
        yield from _lines_of_table(rows)
        return
    for row in rows[1:]:
        yield "; ".join(f"{name}: {value}" for name, value in zip(header, row, strict=False) if value)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace("-", "", 1).isdigit()


def _written(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(normalised(str(value)).split()) if value is not None else ""


def _title(headings: Sequence[Heading], path: Path) -> str:
    return headings[0].text if headings else normalised(path.stem)


def _damaged(error: Exception) -> BadRow:
    problem = f"{type(error).__name__}: {str(error)[:200]}"
    return BadRow(
        f"The file is damaged or protected ({problem}). Open and save it again, or take it out of the corpus."
    )
