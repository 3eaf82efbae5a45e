"""Finds the blocks of Markdown by markdown-it, and writes as text what the tools of documentation alone read.

Those are attributes of headings, admonitions, containers, tabs, includes and components: their marks go, what they
hold stays.

>>> as_documented("# Locks { #locks }\\n\\n!!! note \\"In winter\\"\\n    The lock is closed.\\n")
'# Locks\\n\\nIn winter\\nThe lock is closed.\\n'
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from markdown_it import MarkdownIt

from kraq_dspy.asset.corpus.formats.told_rows import told_rows
from kraq_dspy.records import Heading

_BLOCKS = MarkdownIt("commonmark").enable("table")
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})([^\n]*)")
_ATTRIBUTES = re.compile(r"(?<![ \t])[ \t]{1,9}\{:?[ \t]{0,9}[#.][^{}\n]{0,200}\}[ \t]{0,9}$")
_ADMONITION = re.compile(
    r"(?:!!!|\?\?\?\+?|===[!+]?)(?: [\w-]{1,30}){0,5} (?:[\w-]{1,30}|\"([^\"\n]{0,200})\")[ \t]{0,9}"
)
_CONTAINER = re.compile(r"(?::{3,}|/{3,})(?:[ \t]*\{?[\w-]+\}?[ \t]*(?:\[([^\[\]\n]*)\]|\|?[ \t]*([^\n]*)))?")
_UNREAD = re.compile(
    r"\{\*[^\n]*\*\}|--8<--[^\n]*|\{% *include\b[^\n]*%\}|\{:?[ \t]*[#.][^{}\n]*\}|</?[A-Z][\w.]*(?:\s[^<>\n]*)?/?>"
    r"|import\s[^\n]*['\"];?|export\s+(?:const|default|function)\s[^\n]*"
)
"""Lines that include or import something, attributes of a block, and tags of components."""
_DEFINITION = re.compile(r":[ \t]+(?=\S)")
_HTML_HEADING = re.compile(r"<h([1-6])\b[^<>]*>((?:(?!<h)[^\ue000])*?)</h\1\s*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_TAG_OR_CODE = re.compile(r"(`[^`]*`)|<[A-Za-z/][^<>]*>")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_CELL_ENDS = re.compile(r"(?<!\\)\|")


def as_documented(text: str) -> str:
    """The text without the marks of documentation's dialects, and with long tables told row by row. Code stays."""
    lines: list[str] = []
    indents: list[int] = []  # of the admonitions that are open
    fence = ""
    for line in text.split("\n"):
        bare = line.lstrip(" \t")
        depth = len(line) - len(bare)
        while bare and indents and depth < indents[-1] + 4:
            indents.pop()
        shown = line[4 * len(indents) :] if bare else ""

        marks = _FENCE.match(shown)
        if fence or marks:
            fence = _fence_after(fence, marks) if marks else fence
            lines.append(shown)
        elif admonition := _ADMONITION.fullmatch(bare):
            indents.append(depth)
            lines.append(admonition[1] or "")
        elif container := _CONTAINER.fullmatch(bare):
            lines.append(container[1] or container[2] or "")
        elif _DEFINITION.match(bare) and lines and lines[-1].strip():
            lines[-1] = f"{lines[-1].rstrip()}: {_DEFINITION.sub('', bare, count=1)}"
        elif not _UNREAD.fullmatch(bare.rstrip()):
            lines.append(_ATTRIBUTES.sub("", shown) if shown.startswith("#") else shown)
    return _with_told_tables("\n".join(lines))


def _fence_after(fence: str, marks: re.Match[str]) -> str:
    """The fence that is open behind a line of marks; "" where the line closes it, or is a whole block by itself."""
    run, rest = marks.groups()
    if not fence:
        return "" if "`" in rest and run[0] == "`" else str(run)
    return "" if run.startswith(fence) and not rest.strip() else fence


def find_headings(text: str) -> Iterator[Heading]:
    """The headings of Markdown, and of HTML in it, without their mark-up."""
    starts = _starts(text)
    tokens = _BLOCKS.parse(text)
    for place, token in enumerate(tokens):
        if token.map is None or token.level:
            continue
        start = starts[token.map[0]]
        if token.type == "html_block":
            for match in _HTML_HEADING.finditer(token.content):
                if shown := " ".join(_TAG.sub("", match[2]).split()):
                    yield Heading(start + match.start(), int(match[1]), shown)
        elif token.type == "heading_open" and (shown := _plain(tokens[place + 1].content)):
            yield Heading(start, int(token.tag[1]), " ".join(shown.split()))


def title_among(headings: Sequence[Heading], file_name: str) -> str:
    """The first heading, if it is of level 1 or stands above all others; else, as in MkDocs, the file's name: the first
    of several sections does not name the whole."""
    if headings and (headings[0].level == 1 or all(headings[0].level < each.level for each in headings[1:])):
        return headings[0].text
    return file_name


def _with_told_tables(text: str) -> str:
    if "|" not in text:
        return text
    lines = text.split("\n")
    for token in reversed(_BLOCKS.parse(text)):
        if token.type == "table_open" and token.map is not None and not token.level:
            first, end = token.map
            rows = [_cells(line) for number, line in enumerate(lines[first:end]) if number != 1]
            lines[first:end] = told_rows(rows) or lines[first:end]
    return "\n".join(lines)


def _cells(line: str) -> list[str]:
    inside = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in _CELL_ENDS.split(inside)]


def _starts(text: str) -> list[int]:
    return [0, *accumulate(len(line) + 1 for line in text.split("\n"))]


def _plain(heading: str) -> str:
    """ "The [index](index.md)" as "The index"."""
    heading = _ATTRIBUTES.sub("", f"x{heading}")[1:]
    return _LINK.sub(r"\1", _TAG_OR_CODE.sub(r"\1", heading)).replace("**", "").replace("`", "").strip()
