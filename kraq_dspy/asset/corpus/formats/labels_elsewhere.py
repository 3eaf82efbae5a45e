"""Finds what a file says of who may read it in a place from which kraq does not read labels.

Properties of an office file, a column of a sheet, a `<meta>` of a page, a header of a message: if one is called like
labels, the file is refused, for everybody would read what it means to keep.
"""

import html
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kraq_dspy.asset.corpus.formats.label_lines import fields_of_page
from kraq_dspy.asset.corpus.formats.rows import ReadSettings
from kraq_dspy.asset.label_names import is_label_name

_LONGEST = 1_000_000  # bytes of a part that is looked through
_SHEETS = (".xlsx", ".xls", ".ods")
_PROPERTY_PARTS = ("docProps/custom.xml", "meta.xml")
_PROPERTY = re.compile(
    r"<(?:\w{1,20}:)?(?:property|user-defined)\b[^<>]{0,500}?\b(?:\w{1,20}:)?name=[\"']([^\"'<>]{1,80})"
)
_META = re.compile(
    r"<meta\b[^<>]{0,300}?\b(?:name|property|itemprop|http-equiv)\s{0,3}=\s{0,3}[\"']?([^\"'<>\s]{1,80})", re.IGNORECASE
)
_PROPERTY_OF_RICH_TEXT = re.compile(r"\\propname\s{1,3}([^\\{}]{1,80})")
_FIELD_OF_CELL = re.compile(r"^[\"']?([\w-]{1,60})[\"']?[ \t]{0,5}[:=]", re.MULTILINE)
_PDF = re.compile(rb"/([A-Za-z_#0-9-]{3,40})\s{0,5}[(<\[]|<pdfx:([A-Za-z_0-9-]{3,40})>")
_NAMED_CELL = re.compile(r"(?:^|; )([^\W\d_][\w .-]{0,40}?): ")


def declared_elsewhere(path: Path, name: str, settings: ReadSettings) -> str:
    """Why the file, called `name`, is refused: where it seems to say who may read it. "" if it does not, or if somebody
    has named the column of labels, or a function gives them. Raises OSError."""
    if settings.acl_column or settings.by_function:
        return ""
    suffix = Path(name.lower()).suffix
    names = _NAMES.get(suffix)
    if names is None:
        return ""
    try:
        found = next(filter(is_label_name, names(path)), "")
    except (zipfile.BadZipFile, zlib.error, KeyError, RuntimeError, NotImplementedError, ValueError):
        return ""  # its reader says what is wrong with the file
    return _refusal(found, _PLACES[suffix]) if found else ""


def declared_in_sheet(text: str, name: str, settings: ReadSettings) -> str:
    """Why a sheet, whose lines are `text`, is refused: it has a column with labels, and is one document. "" for another
    kind of file."""
    if not name.lower().endswith(_SHEETS) or settings.acl_column or settings.by_function:
        return ""
    for line in text.split("\n"):
        if "acl" not in line.casefold():
            continue
        cells = line.split("\t") if "\t" in line else [match[1] for match in _NAMED_CELL.finditer(line[:10_000])]
        if found := next(filter(is_label_name, cells), ""):
            return _refusal(found, "a column of the sheet", "Save the sheet as csv, where each row is a document.")
    return ""


def declared_in_header(names: Iterable[str], settings: ReadSettings) -> str:
    """Why a message is refused: one of the `names` of its header is called like labels, also behind "X-". "" if none
    is."""
    if settings.acl_column or settings.by_function:
        return ""
    plain = (re.sub(r"^x-", "", name, flags=re.IGNORECASE) for name in names)
    label_name = next(filter(is_label_name, plain), "")
    return _refusal(label_name, "the header of the message") if label_name else ""


def _refusal(name: str, place: str, way_out: str = "") -> str:
    way_out = way_out or (
        "Give its labels by a function (kraq_dspy.build_index(..., labels=function)), or in the column of a table."
    )
    return (
        f"The name {name!r} in {place} looks like the labels of who may read the document, and kraq does not read them "
        f"there. {way_out} If it says something else, give it another name."
    )


def _properties(path: Path) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            if part.filename in _PROPERTY_PARTS:
                with archive.open(part) as stream:
                    text = stream.read(_LONGEST).decode("utf-8", "replace")
                yield from (html.unescape(match[1]) for match in _PROPERTY.finditer(text))


def _metas(path: Path) -> Iterator[str]:
    with path.open("rb") as stream:
        text = stream.read(_LONGEST).decode("utf-8", "replace")
    yield from (html.unescape(match[1]) for match in _META.finditer(text))
    yield from (name for name, _ in fields_of_page(text))


def _metas_of_book(path: Path) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            if part.filename.lower().endswith(".opf"):
                with archive.open(part) as stream:
                    text = stream.read(_LONGEST).decode("utf-8", "replace")
                yield from (html.unescape(match[1]) for match in _META.finditer(text))


def _properties_of_rich_text(path: Path) -> Iterator[str]:
    with path.open("rb") as stream:
        text = stream.read(_LONGEST).decode("latin-1")
    yield from (match[1] for match in _PROPERTY_OF_RICH_TEXT.finditer(text))


def _fields_of_notebook(path: Path) -> Iterator[str]:
    with path.open("rb") as stream:
        notebook = json.loads(stream.read(50 * _LONGEST))
    if isinstance(notebook, dict):
        cells = notebook.get("cells")
        for part in (notebook, *(cells if isinstance(cells, list) else ())):
            if isinstance(part, dict):
                yield from map(str, part)
                yield from map(str, part["metadata"] if isinstance(part.get("metadata"), dict) else ())
        yield from _front_matter_of_notebook(cells)


def _front_matter_of_notebook(cells: object) -> Iterator[str]:
    """The names of the fields in its first cell, raw or Markdown, as Quarto and MyST have them."""
    first = cells[0] if isinstance(cells, list) and cells else None
    if not isinstance(first, dict) or first.get("cell_type") not in ("raw", "markdown"):
        return
    source = first.get("source", "")
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    if text.lstrip().startswith("---"):
        yield from (match[1] for match in _FIELD_OF_CELL.finditer(text.lstrip()[3:].partition("\n---")[0]))


def _names_in_pdf(path: Path) -> Iterator[str]:
    with path.open("rb") as stream:
        data = stream.read(50 * _LONGEST)
    for match in _PDF.finditer(data):
        yield (match[1] or match[2]).decode("latin-1")


_NAMES: dict[str, Callable[[Path], Iterator[str]]] = {
    **dict.fromkeys((".docx", ".pptx", ".xlsx", ".ods"), _properties),
    **dict.fromkeys((".html", ".htm", ".xhtml"), _metas),
    ".epub": _metas_of_book,
    ".rtf": _properties_of_rich_text,
    ".ipynb": _fields_of_notebook,
    ".pdf": _names_in_pdf,
}
_PLACES = {
    **dict.fromkeys((".docx", ".pptx", ".xlsx", ".ods", ".pdf", ".rtf"), "the properties of the file"),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".epub"), "the metadata or a comment of the page"),
    ".ipynb": "the metadata or the first cell of the notebook",
}
