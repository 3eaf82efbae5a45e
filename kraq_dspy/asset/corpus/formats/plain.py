"""Reads text and Markdown: a file is a document."""

import re
from collections.abc import Iterator
from pathlib import Path

from kraq_dspy.asset.corpus.formats.decode import decode, read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.front_matter import split_front_matter
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row, clean

HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
FENCE = re.compile(r" {0,3}(```|~~~)")


@refuses_unreadable
def read_plain(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is the file's name without its extension."""
    yield _read(path, settings)


@refuses_unreadable
def read_markdown(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is that of the front matter, or the first heading outside code; the text keeps its mark-up.

    Front matter becomes metadata.
    """
    row = _read(path, settings)
    fields, text = split_front_matter(row.text)
    metadata = {name: value for name, value in fields.items() if name not in ("id", "title", "text")}
    yield Row(text, title=str(fields.get("title", "")) or first_heading(text) or row.title, metadata=metadata)


def first_heading(text: str) -> str:
    """Of Markdown; "" without one."""
    fence = ""
    previous = ""
    for line in text.split("\n"):
        if match := FENCE.match(line):
            fence = "" if fence == match[1] else fence or match[1]
        elif not fence:
            if (match := HEADING.fullmatch(line)) and match[1]:
                return match[1].strip()
            if previous.strip() and UNDERLINE.fullmatch(line):
                return previous.strip()
        previous = "" if fence or line.lstrip().startswith(("-", "*", ">", "|")) else line
    return ""


def _read(path: Path, settings: ReadSettings) -> Row:
    """Raises UnreadableTextError."""
    with path.open("rb") as stream:
        return Row(clean(decode(read_limited(stream, settings))), title=clean(path.stem))
