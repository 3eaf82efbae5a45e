"""Reads text and Markdown: a file is a document, its front matter the document's metadata."""

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError, decode, read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.markdown_marks import as_read, without_embedded
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.formats.rtf import RTF, read_rtf
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.asset.scope import ACL, labels_of
from kraq_dspy.records import Heading, Metadata

HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(?=\S)")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
ANCHOR = re.compile(r"\{#[^{}]*\}$")
FENCE = re.compile(r" {0,3}(```|~~~)")


@refuses_unreadable
def read_plain(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is the file's name without its extension."""
    row = _read(path, settings)
    yield dataclasses.replace(row, text=without_embedded(row.text))


@refuses_unreadable
def read_markdown(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is that of the front matter, or the first heading outside code; the text keeps its mark-up, but for
    what nobody reads (`as_read`). Front matter becomes metadata.
    """
    row = _read(path, settings)
    fields, text = split_front_matter(row.text)
    text = as_read(text)
    labels = _labels(fields, settings)
    own = ("id", "title", "text", ACL, settings.acl_column)
    metadata = {name: value for name, value in fields.items() if name not in own}
    headings = tuple(find_headings(text))
    title = str(fields.get("title", "")) or (headings[0].text if headings else "") or row.title
    yield Row(text, title=title, metadata=metadata, headings=headings, labels=labels)


def _labels(fields: Metadata, settings: ReadSettings) -> tuple[str, ...]:
    """Tell who may read the document, by its front matter; of a corpus whose labels have a name,
    nobody without that."""
    if settings.acl_column:
        return labels_of(fields.get(settings.acl_column))
    return labels_of(fields[ACL]) if ACL in fields else ()


_KNOWN = "txt, md, rst, html, pdf, docx, pptx, xlsx, xls, ods, rtf, epub, eml, ipynb, csv, json, jsonl, parquet"


@refuses_unreadable
def read_unknown(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """A file of any kind whose bytes are text, such as README, source code or a log. Its title is its name. Rich text
    is known by its beginning, since Word gives it the name .doc, too."""
    with path.open("rb") as stream:
        is_rich = stream.read(len(RTF)) == RTF
    if is_rich:
        yield from read_rtf(path, settings)
        return
    try:
        row = _read(path, settings)
    except UnreadableTextError as error:
        yield BadRow(f"The kind of file is not known, and it cannot be read as text: {error} Known: {_KNOWN}.")
        return
    yield dataclasses.replace(row, text=without_embedded(row.text), title=normalised(path.name))


@refuses_unreadable
def read_marked_up(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """reStructuredText, Org and AsciiDoc: the title is the first heading, the text keeps its mark-up."""
    row = _read(path, settings)
    marks = {".org": "*", ".adoc": "="}.get(path.suffix.lower(), "")
    headings = tuple(_headings_marked_by(marks, row.text) if marks else _underlined(row.text))
    title = headings[0].text if headings else row.title
    yield Row(without_embedded(row.text), title=title, headings=headings)


def _headings_marked_by(mark: str, text: str) -> Iterator[Heading]:
    for match in re.finditer(rf"^({re.escape(mark)}{{1,6}})[ \t]+(\S.*)$", text, re.MULTILINE):
        yield Heading(match.start(), len(match[1]), match[2].strip())


def _underlined(text: str) -> Iterator[Heading]:
    """Find the headings of reStructuredText, where the marks of a level are those that come
    first."""
    levels: dict[str, int] = {}
    for match in re.finditer(r"^(\S.*)\n(([=\-~^\"'`#*+:.<>_])\3{2,})[ \t]*$", text, re.MULTILINE):
        if len(match[2]) >= len(match[1].rstrip()):
            level = levels.setdefault(match[3], len(levels) + 1)
            yield Heading(match.start(), min(level, 6), match[1].strip())


def find_headings(text: str) -> Iterator[Heading]:
    """Find the headings of Markdown, outside code, without their mark-up."""
    open_fence = previous = ""
    start = 0
    for line in text.split("\n"):
        if fence := FENCE.match(line):
            open_fence = "" if open_fence == fence[1] else open_fence or fence[1]
        elif not open_fence:
            heading = _marked_heading(line, start) or _underlined_heading(previous, line, start)
            if heading is not None:
                yield heading

        begins_block = line.lstrip().startswith(("-", "*", ">", "|", "#"))
        previous = "" if open_fence or begins_block else line
        start += len(line) + 1


def _marked_heading(line: str, start: int) -> Heading | None:
    mark = HEADING.match(line)
    text = _plain(line[mark.end() :]) if mark else ""
    return Heading(start, len(mark[1]), text) if mark and text else None


def _underlined_heading(previous: str, line: str, start: int) -> Heading | None:
    """The heading that the line before is, where this one at `start` underlines it."""
    underline = UNDERLINE.fullmatch(line) if previous.strip() else None
    if underline is None:
        return None
    level = 1 if underline[1][0] == "=" else 2
    return Heading(start - len(previous) - 1, level, _plain(previous))


def _plain(heading: str) -> str:
    """ "The [index](index.md) {#anchor}" as "The index"."""
    heading = heading.strip()
    unfenced = heading.rstrip("#")
    if unfenced != heading and unfenced.rstrip(" \t") != unfenced:  # "## Heading ##", and not "## C#"
        heading = unfenced.rstrip()
    return LINK.sub(r"\1", ANCHOR.sub("", heading)).replace("**", "").replace("`", "").strip()


def _read(path: Path, settings: ReadSettings) -> Row:
    """Raises UnreadableTextError."""
    with path.open("rb") as stream:
        return Row(normalised(decode(read_limited(stream, settings), settings)), title=normalised(path.stem))


_END = re.compile(r"\n(---|\.\.\.)[ \t]*(?:\n|$)")
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
_COMMON = frozenset(("Title", "Author", "Authors", "Date", "Tags", "Categories", "Keywords", "Summary", "Description"))
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_LONGEST_FRONT_MATTER = 50_000  # characters


def split_front_matter(text: str) -> tuple[Metadata, str]:
    """Part the front matter's fields from the text; ({}, the text) if there is none, or it is no
    YAML.

    Fields are text, numbers, true and false, and lists of them, which become text with commas. What is nested deeper is
    left out. A text that begins with a line of dashes and no fields is a text with a rule, and so is a dialogue between
    rules ("Anna: Well?"): its names are no names of fields.
    """
    end = _END.search(text, 3, _LONGEST_FRONT_MATTER) if re.match(r"---[ \t]*\n", text) else None
    if end is None:
        return {}, text

    try:
        values = yaml.BaseLoader(text[3 : end.start()]).get_single_data()  # texts alone: no dates, no octal numbers
    except (yaml.YAMLError, RecursionError):
        return {}, text

    if not isinstance(values, dict) or not any(name in _COMMON or _PLAIN_NAME.fullmatch(str(name)) for name in values):
        return {}, text

    fields: dict[str, str | int | float | bool] = {}
    for name, value in values.items():
        if isinstance(value, str):
            fields[str(name)] = _scalar(value.strip())
        elif isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            fields[str(name)] = ", ".join(value)
        elif name == ACL:  # an empty list, or what names nobody that we know: it is there, and allows nobody
            fields[ACL] = ""
    return fields, text[end.end() :].lstrip("\n")


def _scalar(value: str) -> str | int | float | bool:
    if value in ("true", "false") or _NUMBER.fullmatch(value):
        scalar: int | float | bool = json.loads(value)
        return scalar
    return value
