"""Reads text and Markdown: a file is a document, its front matter the document's metadata."""

import re
from collections.abc import Iterator
from pathlib import Path

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError, refuses_unreadable
from kraq_dspy.asset.corpus.formats.front_matter import read_source, split_front_matter
from kraq_dspy.asset.corpus.formats.mail import is_mailbox, read_mailbox
from kraq_dspy.asset.corpus.formats.markdown_blocks import as_documented, find_headings, title_among
from kraq_dspy.asset.corpus.formats.markdown_marks import as_read, without_embedded
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.formats.rtf import RTF, read_rtf
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.asset.scope import ACL
from kraq_dspy.records import Heading


@refuses_unreadable
def read_plain(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is the file's name without its extension."""
    raw, labels = read_source(path, settings)
    yield Row(without_embedded(normalised(raw)), title=normalised(path.stem), labels=labels)


@refuses_unreadable
def read_markdown(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is that of the front matter, or `title_among` the headings; the text keeps its mark-up, but for
    what nobody reads (`as_read`). Front matter becomes metadata.
    """
    raw, labels = read_source(path, settings)
    fields, text = split_front_matter(raw)
    text = as_documented(as_read(normalised(text)))
    own = ("id", "title", "text", settings.acl_column or ACL)
    metadata = {name: value for name, value in fields.items() if name not in own}
    headings = tuple(find_headings(text))
    title = str(fields.get("title", "")) or title_among(headings, normalised(path.stem))
    yield Row(text, title=title, metadata=metadata, headings=headings, labels=labels)


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
        raw, labels = read_source(path, settings)
    except UnreadableTextError as error:
        yield BadRow(f"The kind of file is not known, and it cannot be read as text: {error} Known: {_KNOWN}.")
        return
    yield Row(without_embedded(normalised(raw)), title=normalised(path.name), labels=labels)


@refuses_unreadable
def read_marked_up(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """Org and AsciiDoc: the title is one of the headings (`title_among`), the text keeps its mark-up."""
    raw, labels = read_source(path, settings)
    text = normalised(raw)
    headings = tuple(_headings_marked_by({".org": "*"}.get(path.suffix.lower(), "="), text))
    title = title_among(headings, normalised(path.stem))
    yield Row(without_embedded(text), title=title, headings=headings, labels=labels)


def _headings_marked_by(mark: str, text: str) -> Iterator[Heading]:
    for match in re.finditer(rf"^({re.escape(mark)}{{1,6}})[ \t]+(\S.*)$", text, re.MULTILINE):
        yield Heading(match.start(), len(match[1]), match[2].strip())
