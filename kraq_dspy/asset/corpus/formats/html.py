"""Reads web pages: what a reader sees of them, a line for each block, in one pass whatever a page leaves open."""

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.corpus.boilerplate import PROSE, Linked, count_letters
from kraq_dspy.asset.corpus.formats.decode import decode_page, read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.records import Heading

DROPPED = frozenset(
    ("title", "script", "style", "nav", "template", "noscript", "svg", "iframe", "object", "select", "noembed")
)
INLINE = frozenset(
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
        *("img", "ins", "kbd", "label", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike"),
        *("strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
    )
)
CELLS = frozenset(("td", "th"))
VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
RAW = frozenset(("script", "style", "title", "textarea", "iframe", "noembed", "xmp"))
"""What holds text alone: nothing in them is a tag but their own end."""
KEEPS_LINES = frozenset(("pre", "textarea", "xmp"))
HEADINGS = {f"h{level}": level for level in range(1, 7)}

_SPACES = re.compile(r"[ \t\n\f\r]+")
_TAG = re.compile(r"<(?P<end>/)?(?P<name>[A-Za-z][^\s/>]*)")
_QUOTE = re.compile(r"=[ \t\n\f\r]*([\"'])")
_PRIVATE = re.compile("[\ue000-\ue008]")
_LINK_BEGINS, _LINK_ENDS = "\ue007", "\ue008"
_LONGEST_LINK = 300  # characters; what goes on for longer was not closed, or is a paragraph


@refuses_unreadable
def read_html(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is `<title>`. Scripts, styles and navigation are dropped; headings are kept with their places."""
    with path.open("rb") as stream:
        source = decode_page(read_limited(stream, settings), settings)
    page = _Page()
    for part in _parts(source):
        page.add(part)
    text, headings, linked = page.text()
    if not text:
        yield BadRow("The page shows no text; it may be filled in by a script. Save the page as a browser shows it.")
        return
    title = normalised(_SPACES.sub(" ", page.title)).strip() or normalised(path.stem)
    yield Row(text, title=title, headings=headings, linked=linked)


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a page: text where it has no `name`, else a tag that begins or ends."""

    text: str = ""
    name: str = ""
    is_end: bool = False
    is_closed: bool = False  # as <br/>
    is_link: bool = False


def _parts(source: str) -> Iterator[_Part]:
    """Tags and the text between them. No character is looked at twice, so an open tag or comment costs nothing."""
    place = 0
    while (begin := source.find("<", place)) >= 0:
        if begin > place:
            yield _Part(html.unescape(source[place:begin]))
        if source.startswith("<!--", begin):
            place = _after(source, "-->", begin + 4)
        elif source.startswith("<![CDATA[", begin):
            place = _after(source, "]]>", begin + 9)
            yield _Part(source[begin + 9 : place].removesuffix("]]>"))
        elif source.startswith(("<!", "<?"), begin):
            place = _after(source, ">", begin + 2)
        elif match := _TAG.match(source, begin):
            name = match["name"].lower()
            place = _end_of_tag(source, match.end())
            is_closed = source[place - 2 : place] == "/>"
            is_link = name == "a" and "href" in source[match.end() : place].lower()
            yield _Part(name=name, is_end=match["end"] is not None, is_closed=is_closed, is_link=is_link)
            if name in RAW and not match["end"] and not is_closed:
                closing = re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE).search(source, place)
                end = closing.start() if closing else len(source)
                raw = source[place:end]
                yield _Part(html.unescape(raw) if name in ("title", "textarea") else raw)
                place = end
        else:
            yield _Part("<")
            place = begin + 1
    if place < len(source):
        yield _Part(html.unescape(source[place:]))


def _after(source: str, mark: str, start: int) -> int:
    """Behind the next `mark`; the end where there is none, as HTML has it."""
    found = source.find(mark, start)
    return found + len(mark) if found >= 0 else len(source)


def _end_of_tag(source: str, place: int) -> int:
    """Behind the ">" of a tag; one inside a quoted value is none, unless nobody closed the quote."""
    end = source.find(">", place)
    while end >= 0:
        quote = _QUOTE.search(source, place, end)
        closing = source.find(quote[1], quote.end()) if quote else -1
        if closing < 0:
            return end + 1
        place = closing + 1
        if place > end:
            end = source.find(">", place)
    return len(source)


class _Page:
    """Gathers what a reader sees, from the parts of a page in their order."""

    def __init__(self) -> None:
        self.title = ""
        self._pieces: list[str] = []
        self._open: list[str] = []
        self._counts: Counter[str] = Counter()  # of what is open: how often each is, and which kinds matter
        self._hidden = self._kept_lines = 0
        self._has_title = False

    def add(self, part: _Part) -> None:
        if not part.name:
            self._add_text(part.text)
        elif part.is_end:
            self._close(part.name)
        else:
            self._pieces.append(_around(part.name))
            if part.name in HEADINGS and not self._hidden:
                self._pieces.append(chr(0xE000 + HEADINGS[part.name]))
            if part.is_link and not self._hidden:
                self._pieces.append(_LINK_BEGINS)
            if part.name not in VOID and not part.is_closed:
                self._enter(part.name, 1)
                self._open.append(part.name)

    def _add_text(self, text: str) -> None:
        if self._open and self._open[-1] == "title" and not self._has_title:
            self.title, self._has_title = text, True
        if not self._hidden:
            text = _PRIVATE.sub("", text)
            self._pieces.append(text if self._kept_lines else _SPACES.sub(" ", text))

    def _close(self, name: str) -> None:
        """With what was left open inside. An end of what is not open changes nothing, but for `</p>` and the like."""
        self._pieces.append(_around(name))
        if not self._counts[name]:
            return
        while self._open:
            last = self._open.pop()
            self._enter(last, -1)
            if last in HEADINGS and not self._hidden:
                self._pieces.append("\ue000")
            if last == "a" and not self._hidden:
                self._pieces.append(_LINK_ENDS)
            self._pieces.append(_around(last))
            if last == name:
                return

    def _enter(self, name: str, step: int) -> None:
        self._counts[name] += step
        self._hidden += step * (name in DROPPED)
        self._kept_lines += step * (name in KEEPS_LINES)

    def text(self) -> tuple[str, tuple[Heading, ...], dict[int, Linked]]:
        """One line for a block, one space between words, cells of a table side by side; with the headings among them,
        and by where a line begins what of it is linked."""
        lines: list[str] = []
        headings: list[Heading] = []
        linked: dict[int, Linked] = {}
        start = level = 0
        link: int | None = None  # how long the one is that is open
        for line in normalised("".join(self._pieces)).split("\n"):
            marks = _PRIVATE.findall(line)
            level = max([level, *(ord(mark) - 0xE000 for mark in marks if mark < _LINK_BEGINS)])
            if link is not None or _LINK_BEGINS in marks:
                linked[start], link = _linked(line, link)
            tidy = _tidy(_PRIVATE.sub("", line))
            if tidy and level:
                headings.append(Heading(start, level, tidy))
            if tidy or "\ue000" in marks:
                level = 0
            if tidy:
                lines.append(tidy)
                start += len(tidy) + 1
        return "\n".join(lines), tuple(headings), linked


def _linked(line: str, link: int | None) -> tuple[Linked, int | None]:
    """What of the line is linked, where a link of that length is open at its start; and the one that is at its end."""
    letters = count = 0
    for piece in re.split(f"([{_LINK_BEGINS}{_LINK_ENDS}])", line):
        if piece == _LINK_BEGINS:
            link = 0
        elif piece == _LINK_ENDS:
            link = None
        elif link is not None and (n_letters := count_letters(piece)):
            letters, count = letters + (n_letters if n_letters <= PROSE else 0), count + 1
            link = link + len(piece) if link + len(piece) <= _LONGEST_LINK else None
    return Linked(letters, count), link


def _around(name: str) -> str:
    return "" if name in INLINE else "\t" if name in CELLS else "\n"


def _tidy(line: str) -> str:
    """Cells without the spaces around them and between them a tab; words with one space between them."""
    cells = (re.sub(" +", " ", cell).strip(" ") for cell in line.split("\t"))
    return "\t".join(filter(None, cells))
