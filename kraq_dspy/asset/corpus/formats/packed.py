"""Reads books (epub) and notebooks (ipynb), and any file that gzip has compressed."""

import json
import posixpath
import shutil
import tempfile
import urllib.parse
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.formats.decode import decode, decode_page, read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.html import page_row
from kraq_dspy.asset.corpus.formats.html_parts import parts_of
from kraq_dspy.asset.corpus.formats.markdown_blocks import find_headings, title_among
from kraq_dspy.asset.corpus.formats.markdown_marks import as_read
from kraq_dspy.asset.corpus.formats.rows import BadRow, Reader, ReadSettings, Row
from kraq_dspy.asset.corpus.formats.zipped import DAMAGED_GZIP, Unpacked, check_zip
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.records import Heading


@refuses_unreadable
def read_epub(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The chapters in reading order, with their headings."""
    check_zip(path, settings)
    with zipfile.ZipFile(path) as archive:
        try:
            title, chapters = _chapters(archive, settings)
        except (KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            yield BadRow(f"The book is damaged or protected ({error}). Save it again without protection.")
            return

    text, headings = "", []
    for chapter in chapters:
        text += "\n\n" if text else ""
        headings += [Heading(len(text) + each.start, each.level, each.text) for each in chapter.headings]
        text += chapter.text

    if not text:
        yield BadRow("The book has no text; its pages may be pictures.")
        return
    yield Row(text, title=title or normalised(path.stem), headings=tuple(headings))


def _chapters(archive: zipfile.ZipFile, settings: ReadSettings) -> tuple[str, list[Row]]:
    """The book's title, and its pages. Raises KeyError for a file that it names and does not hold."""
    container = archive.read("META-INF/container.xml").decode("utf-8", "replace")
    roots = (part for part in parts_of(container) if part.name == "rootfile")
    package = next(roots).attributes()["full-path"]
    title, paths = _title_and_files(archive.read(package).decode("utf-8", "replace"))

    folder = posixpath.dirname(package)
    pages = []
    for path in paths:
        content = archive.read(posixpath.normpath(posixpath.join(folder, path)))
        page = page_row(decode_page(content, settings), "")
        if page is not None:
            pages.append(page)
    return title, pages


def _title_and_files(package: str) -> tuple[str, list[str]]:
    """The title that a book's package tells, and its files in reading order."""
    path_of: dict[str, str] = {}
    order: list[str] = []
    title = ""
    in_title = False
    for part in parts_of(package):
        if not part.name:
            title += part.text if in_title else ""
            continue

        in_title = part.name == "dc:title" and not part.is_end and not title
        attributes = part.attributes()
        if part.name.endswith("itemref"):
            order.append(attributes.get("idref", ""))
        elif part.name.endswith("item"):
            path = urllib.parse.unquote(attributes.get("href", ""))
            path_of[attributes.get("id", "")] = path

    paths = [path_of[item] for item in order if item in path_of]
    return " ".join(normalised(title).split()), paths


@refuses_unreadable
def read_notebook(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """Markdown as it is, code in fences, and what it printed; the title is one of the headings (`title_among`)."""
    text = decode(read_limited(path, settings), settings)
    try:
        cells = json.loads(text)["cells"]
        parts = [part for cell in cells for part in _cell(cell) if part.strip()]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield BadRow(f"The notebook cannot be read ({error}). Save it again with Jupyter.")
        return

    if not parts:
        yield BadRow("The notebook is empty.")
        return
    text = normalised("\n\n".join(parts))
    headings = tuple(find_headings(text))
    yield Row(text, title=title_among(headings, normalised(path.stem)), headings=headings)


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = _joined(cell.get("source", ""))
    if cell.get("cell_type") != "code":
        yield as_read(source)
        return
    if source.strip():
        yield f"```\n{source}\n```"
    for output in cell.get("outputs", []):
        shown = _joined(output.get("text", "") or output.get("data", {}).get("text/plain", ""))
        if shown.strip():
            yield f"```\n{shown.rstrip()}\n```"


def _joined(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(map(str, lines))


def reader_named(name: str, readers: Mapping[str, Reader], other: Reader | None = None) -> Reader | None:
    """The reader for a file of this name, by its extension in any case, also where gzip has compressed it; `other` for
    an extension that is none of theirs."""
    known = next((reader for extension, reader in readers.items() if name.lower().endswith(extension)), None)
    inside = Path(name).name[: -len(".gz")]
    if known is None and inside and name.lower().endswith(".gz"):
        reader = reader_named(inside, readers, other)
        return None if reader is None else _unpacking(reader, inside)
    return known or other


def _unpacking(reader: Reader, name: str) -> Reader:
    """The reader, for a file that gzip has compressed; `name` is what the file is called without it."""

    @refuses_unreadable
    def read(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
        with tempfile.TemporaryDirectory() as folder:
            inside = Path(folder) / name
            try:
                with path.open("rb") as file, Unpacked(file, settings) as packed, inside.open("wb") as out:
                    shutil.copyfileobj(packed, out)
            except DAMAGED_GZIP as error:
                yield BadRow(f"The gzip data is damaged ({error}). Compress or download it again.")
                return
            yield from reader(inside, settings)

    return read
