"""Reads text and Markdown: a file is a document, its front matter the document's metadata."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError, decode, read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.front_matter import front_matter_labels, split_front_matter
from kraq_dspy.asset.corpus.formats.mail import is_mailbox, read_mailbox
from kraq_dspy.asset.corpus.formats.markdown_marks import as_read, without_embedded
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.formats.rtf import RTF, read_rtf
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.asset.scope import ACL
from kraq_dspy.errors import CorpusError
from kraq_dspy.records import Heading

HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(?=\S)")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
ANCHOR = re.compile(r"\{#[^{}]*\}$")
FENCE = re.compile(r" {0,3}(```|~~~)")


@refuses_unreadable
def read_plain(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is the file's name without its extension."""
    row, raw = _read(path, settings)
    yield _with_labels(dataclasses.replace(row, text=without_embedded(row.text)), raw, settings)


@refuses_unreadable
def read_markdown(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is that of the front matter, or the first heading outside code; the text keeps its mark-up, but for
    what nobody reads (`as_read`). Front matter becomes metadata.
    """
    raw = _decoded(path, settings)
    try:
        labels = front_matter_labels(raw, settings.acl_column, by_function=settings.by_function)
    except CorpusError as error:
        yield BadRow(str(error))
        return
    fields, text = split_front_matter(raw)
    text = as_read(normalised(text))
    own = ("id", "title", "text", settings.acl_column or ACL)
    metadata = {name: value for name, value in fields.items() if name not in own}
    headings = tuple(find_headings(text))
    title = str(fields.get("title", "")) or (headings[0].text if headings else "") or normalised(path.stem)
    yield Row(text, title=title, metadata=metadata, headings=headings, labels=labels)


def _with_labels(row: Row, raw: str, settings: ReadSettings) -> Row | BadRow:
    """The row of a file without front matter by custom, and the labels that it has all the same."""
    try:
        labels = front_matter_labels(raw, settings.acl_column, by_function=settings.by_function)
        return dataclasses.replace(row, labels=labels)
    except CorpusError as error:
        return BadRow(str(error))


_KNOWN = "txt, md, rst, html, pdf, docx, pptx, xlsx, xls, ods, rtf, epub, eml, mbox, ipynb, csv, json, jsonl, parquet"


@refuses_unreadable
def read_unknown(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """A file of any kind whose bytes are text, such as README, source code or a log. Its title is its name. Rich text
    is known by its beginning, since Word gives it the name .doc, and so is a mailbox, which may be called Inbox."""
    with path.open("rb") as stream:
        beginning = stream.read(1000)
    if beginning.startswith(RTF) or is_mailbox(beginning):
        yield from (read_mailbox if is_mailbox(beginning) else read_rtf)(path, settings)
        return
    try:
        row, raw = _read(path, settings)
    except UnreadableTextError as error:
        yield BadRow(f"The kind of file is not known, and it cannot be read as text: {error} Known: {_KNOWN}.")
        return
    row = dataclasses.replace(row, text=without_embedded(row.text), title=normalised(path.name))
    yield _with_labels(row, raw, settings)


@refuses_unreadable
def read_marked_up(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """reStructuredText, Org and AsciiDoc: the title is the first heading, the text keeps its mark-up."""
    row, raw = _read(path, settings)
    marks = {".org": "*", ".adoc": "="}.get(path.suffix.lower(), "")
    headings = tuple(_headings_marked_by(marks, row.text) if marks else _underlined(row.text))
    title = headings[0].text if headings else row.title
    yield _with_labels(Row(without_embedded(row.text), title=title, headings=headings), raw, settings)


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


def _read(path: Path, settings: ReadSettings) -> tuple[Row, str]:
    """The file as a row, and its text as it was written. Raises UnreadableTextError."""
    raw = _decoded(path, settings)
    return Row(normalised(raw), title=normalised(path.stem)), raw


def _decoded(path: Path, settings: ReadSettings) -> str:
    with path.open("rb") as stream:
        return decode(read_limited(stream, settings), settings)
