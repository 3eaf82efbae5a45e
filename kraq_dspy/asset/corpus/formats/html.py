"""Reads web pages: what a reader sees of them, a line for each block."""

import re
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup, ParserRejectedMarkup, Tag
from bs4.dammit import EncodingDetector
from bs4.element import NavigableString, PreformattedString

from kraq_dspy.asset.corpus.formats.decode import decode, read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row, clean

DROPPED = frozenset(("head", "script", "style", "nav", "template", "noscript", "svg", "iframe", "object", "select"))
INLINE = frozenset(
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
        *("img", "ins", "kbd", "label", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike"),
        *("strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
    )
)
CELLS = frozenset(("td", "th"))
SPACES = re.compile(r"[ \t\n\f\r]+")


@refuses_unreadable
def read_html(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is `<title>`. Scripts, styles and navigation are dropped."""
    try:
        with path.open("rb") as stream:
            data = read_limited(stream, settings)
        declared = EncodingDetector.find_declared_encoding(data, is_html=True)
        soup = BeautifulSoup(clean(decode(data, declared)), "html.parser")
        title = soup.title.get_text() if soup.title else ""
        text = _visible_text(soup)
    except (ParserRejectedMarkup, RecursionError, AssertionError, ValueError) as error:
        yield BadRow(f"The HTML cannot be parsed: {error or type(error).__name__}. Mend it, or save it as text.")
        return
    if not text:
        yield BadRow("The page shows no text; it may be filled in by a script. Save the page as a browser shows it.")
        return
    yield Row(text, title=SPACES.sub(" ", title).strip() or clean(path.stem))


def _visible_text(soup: BeautifulSoup) -> str:
    """Walks without recursion: pages nest deeper than Python's stack."""
    pieces: list[str] = []
    waiting: list[tuple[Tag | NavigableString | str, bool]] = [(soup, False)]
    while waiting:
        node, preformatted = waiting.pop()
        if isinstance(node, PreformattedString):  # comments, doctypes, processing instructions
            continue
        if isinstance(node, Tag):
            if node.name in DROPPED:
                continue
            around = "" if node.name in INLINE else "\t" if node.name in CELLS else "\n"
            keeps_lines = preformatted or node.name in ("pre", "textarea")
            pieces.append(around)
            waiting.append((_Separator(around), False))
            waiting.extend(
                (child, keeps_lines) for child in reversed(node.contents) if isinstance(child, Tag | NavigableString)
            )
        elif isinstance(node, _Separator):
            pieces.append(str(node))
        else:
            pieces.append(str(node) if preformatted else SPACES.sub(" ", str(node)))
    return _tidy("".join(pieces))


class _Separator(str):
    """What follows an element, between the texts of the page."""

    __slots__ = ()


def _tidy(text: str) -> str:
    """One line for a block, one space between words, cells of a table side by side."""
    lines = (re.sub(r"[ \t]*\t[ \t]*", "\t", line).strip(" \t") for line in text.split("\n"))
    return "\n".join(re.sub(" +", " ", line) for line in lines if line)
