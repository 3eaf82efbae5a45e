"""Reads text and Markdown: a file is a document, its front matter the document's metadata."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from kraq_dspy.asset.corpus.formats.decode import decode, read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.records import Heading, Metadata

HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(?=\S)")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
ANCHOR = re.compile(r"\{#[^{}]*\}$")
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
    headings = tuple(find_headings(text))
    title = str(fields.get("title", "")) or (headings[0].text if headings else "") or row.title
    yield Row(text, title=title, metadata=metadata, headings=headings)


def find_headings(text: str) -> Iterator[Heading]:
    """Of Markdown, outside code, without their mark-up."""
    fence = previous = ""
    start = 0
    for line in text.split("\n"):
        if match := FENCE.match(line):
            fence = "" if fence == match[1] else fence or match[1]
        elif not fence:
            if (match := HEADING.match(line)) and (heading := _plain(line[match.end() :])):
                yield Heading(start, len(match[1]), heading)
            elif previous.strip() and (match := UNDERLINE.fullmatch(line)):
                yield Heading(start - len(previous) - 1, 1 if match[1][0] == "=" else 2, _plain(previous))
        previous = "" if fence or line.lstrip().startswith(("-", "*", ">", "|", "#")) else line
        start += len(line) + 1


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


_FENCE = re.compile(r"---[ \t]*")
_END = re.compile(r"(---|\.\.\.)[ \t]*")
_FIELD = re.compile(r"([^\s:#\-][^:]*):(?:[ \t]+(.*))?")
_ITEM = re.compile(r"\s*-[ \t]+(.*)")
_BLOCK = re.compile(r"([|>])[0-9+-]{0,2}")
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_.-]*")
_COMMON = frozenset(
    "title author authors date tags categories keywords summary description abstract lang language".split()  # noqa: SIM905
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def split_front_matter(text: str) -> tuple[Metadata, str]:
    """Its fields, and the text without it; ({}, the text) where there is none.

    Fields are the plain ones of YAML: text, folded too, numbers, true and false, and lists of them, which become text
    with commas. What is nested deeper is left out. A text that begins with a line of dashes and no fields is a text
    with a rule, and so is a dialogue between rules ("Anna: Well?"): its names are no names of fields.
    """
    lines = text.split("\n")
    if not _FENCE.fullmatch(lines[0]):
        return {}, text
    end = next((number for number, line in enumerate(lines[1:], start=1) if _END.fullmatch(line)), None)
    if end is None or not any(_FIELD.fullmatch(line) for line in lines[1:end]):
        return {}, text
    values: dict[str, list[str]] = {}
    blocks: dict[str, str] = {}  # of the fields whose text stands in lines of its own: what is put between these
    name = ""
    for line in lines[1:end]:
        if match := _FIELD.fullmatch(line):
            name = match[1].strip()
            if name in values:  # no field is there twice, but who speaks speaks again
                return {}, text
            block = _BLOCK.fullmatch((match[2] or "").strip())
            if block:
                blocks[name] = "\n" if block[1] == "|" else " "
            values[name] = [] if block else _listed(match[2] or "")
        elif name in blocks:
            if line.strip():
                values[name].append(line.strip())
        elif name and (match := _ITEM.fullmatch(line)):
            values[name].append(match[1])
        elif line.strip() and not line[0].isspace() and not line.startswith("#"):
            return {}, text
        elif len(values.get(name, ())) == 1 and line.strip() and not _FIELD.fullmatch(line.strip()):
            values[name] = [f"{values[name][0]} {line.strip()}"]  # a value that goes on in the next line
    if not any(name.lower() in _COMMON or _PLAIN_NAME.fullmatch(name) for name in values):
        return {}, text
    fields = {
        name: blocks[name].join(parts) if name in blocks else _joined(parts) for name, parts in values.items() if parts
    }
    return fields, "\n".join(lines[end + 1 :]).lstrip("\n")


def _listed(value: str) -> list[str]:
    value = value.strip()
    if not value:
        return []
    if value.startswith("[") and value.endswith("]"):
        return [part for part in value[1:-1].split(",") if part.strip()]
    return [value]


def _joined(parts: list[str]) -> str | int | float | bool:
    values = [_scalar(part.strip()) for part in parts]
    return values[0] if len(values) == 1 else ", ".join(map(str, values))


def _scalar(value: str) -> str | int | float | bool:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    if value in ("true", "false") or (_NUMBER.fullmatch(value) and len(value) < 16):
        try:
            scalar: int | float | bool = json.loads(value)
        except ValueError:  # 007 is no number
            return value
        return scalar
    return value
