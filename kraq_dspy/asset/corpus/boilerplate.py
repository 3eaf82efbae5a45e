"""Leaves out of web pages what is no part of their text: menus, lists of links, cookie notices, where links lead.

A line that consists of links is told by its letters, a notice by its words, and what stands beside them, such as the
names of menus, by its being short or by standing in other pages too. Text that is no page of links keeps every line but
the buttons of notices.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kraq_dspy.records import Heading

PAGE_LINKS = 10  # so many links make a text a page
LINKED = 0.75  # share of a line's letters in links from which on it is a line of links
PROSE = 200  # letters of a link that is a paragraph
RUN = 3  # lines of links, or links of a line, that make a list of links
SHORT = 60  # bytes in UTF-8 of a name in a menu
REPEATED = 3  # pages that have a line which is no part of any
INTRODUCTION = 6  # words of a sentence that ends with a colon: the list behind it belongs to it

_TEXT = r"(?>(?:\\.|[^\[\]\\]|\[(?:\\.|[^\[\]\\])*\])*)"
_TARGET = (
    r'\((?:(?>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?: +"(?:\\.|[^"\\\n])*")? *'
    r"|(?>javascript:[^()\n]*(?:\([^()\n]*\)[^()\n]*)*))\)"
)
_IMAGE = re.compile(rf"!\[{_TEXT}\]{_TARGET}")
_LINK = re.compile(rf"\[({_TEXT})\]{_TARGET}")
_WEB_LINK = re.compile(r"\]\(https?://")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_ITEM = re.compile(r"[\s>]*(?:[*+-]|\d{1,3}[.)])?\s+(?:\[[ xX]\]\s*)?")
_LETTERS = re.compile(r"[^\W_]")
_WORDS = re.compile(r"\w+")
_ADDRESS = re.compile(r"\bhttps?://\S+")
_HEADING = re.compile(r"[\s>]*(?:[*+-]\s+)?(#{1,6})\s")
_UNDERLINE = re.compile(r"\s*(=+|-+)\s*")
_BUTTON = re.compile(
    r"(accept|reject|allow|decline|manage|view|confirm)( all| my)?( optional| necessary)? (cookies|choices|consent)"
    r"( preferences| settings)?|cookies? (settings|policy|preferences|consent|notice|list|details)"
    r"|(strictly necessary|performance|functional|targeting|analytics|advertising) cookies"
    r"|(skip|jump) to (main )?(content|navigation)|share this( (page|article|story|post))?",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    r"\b(we|our|us|this (web)?site|these|by (clicking|continuing))\b.{0,200}\bcookies?\b|all rights reserved"
    r"|\bcookies?\b.{0,80}\b(we|our|this (web)?site)\b|\benable javascript\b|\b(subscribe|sign up) (to|for) (our|the)\b"
    r".{0,60}\bnewsletters?\b|\bno spam\b|\bunsubscribe at any time\b|\baffiliate commission\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text without boilerplate, with the headings that are left; and the lines that were left out, as shown."""

    text: str
    headings: tuple[Heading, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    """A line as it is `written` and `shown` to a reader. `start` is where it begins in the text, `linked` how many of its
    letters are in links."""

    written: str
    shown: str
    start: int
    letters: int = 0
    linked: int = 0
    n_links: int = 0
    is_code: bool = False

    @property
    def is_links(self) -> bool:
        return self.n_links > 0 and LINKED * self.letters <= self.linked <= PROSE * self.n_links

    @property
    def is_blank(self) -> bool:
        return not self.letters and not self.is_code

    @property
    def bare(self) -> str:
        """Without marks of lists and emphasis, and without addresses."""
        return _ADDRESS.sub("", _ITEM.sub("", self.shown, count=1)).strip(" \t#*_!>")

    @property
    def words(self) -> str:
        """The words alone, by which equal lines are known."""
        return " ".join(_WORDS.findall(self.bare.lower()))

    @property
    def is_short(self) -> bool:
        return len(self.bare.encode()) <= SHORT and not self.bare.endswith(".")

    @property
    def level(self) -> int:
        """Of a heading in Markdown; 0 for another line."""
        match = _HEADING.match(self.shown)
        return len(match[1]) if match else 0


class RepeatedLines:
    """Which lines stand in at least `REPEATED` pages of a corpus.

    >>> lines = RepeatedLines()
    >>> page = "[Home](https://a.org)\\n" * PAGE_LINKS + "Top stories"
    >>> for _ in range(REPEATED):
    ...     lines.add(page)
    >>> "top stories" in lines
    True
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._pages = Counter[int]({hash(words): REPEATED for words in known})

    def add(self, text: str, links: Sequence[tuple[int, int]] = ()) -> None:
        if _is_page(text, links):
            self._pages.update({hash(line.words) for line in _lines(text, links) if line.letters and not line.is_links})

    def __contains__(self, words: str) -> bool:
        return self._pages[hash(words)] >= REPEATED


def cleaned(
    text: str,
    repeated: RepeatedLines,
    headings: Sequence[Heading] = (),
    links: Sequence[tuple[int, int]] = (),
) -> Cleaned:
    """The text without boilerplate. `links` are where it is linked, (start, end) in characters, where it has no
    Markdown that says so."""
    if not _is_page(text, links):
        lines = list(_lines(text, ()))
        left_out = {n for n, line in enumerate(lines) if line.letters and _BUTTON.fullmatch(line.bare)}
        return _without(text, lines, left_out, headings, as_written=True)
    lines = list(_lines(text, links))
    return _without(text, lines, _boilerplate(lines, repeated), headings)


def _is_page(text: str, links: Sequence[tuple[int, int]]) -> bool:
    return len(links) >= PAGE_LINKS or sum(1 for _ in _WEB_LINK.finditer(text)) >= PAGE_LINKS


def _lines(text: str, links: Sequence[tuple[int, int]]) -> Iterator[_Line]:
    """Every line of the text, in order."""
    start, fence, at = 0, "", 0
    for raw in text.split("\n"):
        end = start + len(raw)
        if match := _FENCE.match(raw):
            fence = "" if fence == match[1] else fence or match[1]
            yield _Line(raw, raw, start, is_code=True)
        elif fence:
            yield _Line(raw, raw, start, is_code=True)
        else:
            of_line = []
            while at < len(links) and links[at][0] < end:
                of_line.append(text[links[at][0] : links[at][1]])
                at += 1
            unpictured = _IMAGE.sub("", raw)
            of_line += _LINK.findall(unpictured)
            shown = _LINK.sub(r"\1", unpictured)
            linked = sum(map(_count, of_line))
            yield _Line(raw, shown, start, _count(shown), linked, len(of_line))
        start = end + 1


def _boilerplate(lines: Sequence[_Line], repeated: RepeatedLines) -> set[int]:
    """Numbers of the lines to leave out."""
    seen = [number for number, line in enumerate(lines) if not line.is_blank and not _UNDERLINE.fullmatch(line.shown)]
    left_out = set(_lists_of_links(lines, seen))
    left_out |= {number for number in seen if _is_notice(lines[number], repeated)}
    beside = [number in left_out for number in seen]
    for order in (range(len(seen)), reversed(range(len(seen)))):  # what stands behind boilerplate, then before it
        previous = False
        for place in order:
            line = lines[seen[place]]
            if not beside[place] and previous and line.is_short and not line.level and line.words in repeated:
                beside[place] = True
            previous = beside[place]
    for place in range(1, len(seen) - 1):
        line = lines[seen[place]]
        between = beside[place - 1] and beside[place + 1]
        if between and (line.is_links or line.words in repeated or (line.is_short and not line.level)):
            beside[place] = True
    level = 1  # that of the next heading which is kept, where nothing stands before it
    for place in range(len(seen) - 2, 0, -1):
        line = lines[seen[place]]
        if beside[place]:
            continue
        if beside[place + 1] and line.is_short and 0 < level <= line.level:
            beside[place] = True  # nothing of its section is left
        else:
            level = line.level
    return {number for number, is_left_out in zip(seen, beside, strict=True) if is_left_out}


def _lists_of_links(lines: Sequence[_Line], seen: Sequence[int]) -> Iterator[int]:
    run: list[int] = []
    before = ""
    for number in [*seen, -1]:
        if number >= 0 and lines[number].is_links and not lines[number].shown.lstrip().startswith("|"):
            run.append(number)
            continue
        n_links = sum(lines[one].n_links for one in run)
        introduced = before.rstrip().endswith((":", "：")) and len(_WORDS.findall(before)) >= INTRODUCTION
        if n_links >= RUN and not introduced:
            yield from run
        run, before = [], lines[number].shown


def _is_notice(line: _Line, repeated: RepeatedLines) -> bool:
    if line.is_code:
        return False
    return _BUTTON.fullmatch(line.bare) is not None or (
        _NOTICE.search(line.shown) is not None and line.words in repeated
    )


def _without(
    text: str, lines: Sequence[_Line], left_out: set[int], headings: Sequence[Heading], *, as_written: bool = False
) -> Cleaned:
    """The lines that are not left out, one empty line at most between two, each heading with its new place."""
    if as_written and not left_out:
        return Cleaned(text, tuple(headings))
    starts: dict[int, int] = {}
    kept: list[str] = []
    length = 0
    for number, line in enumerate(lines):
        shown = line.written if as_written else line.shown
        goes_with_heading = number - 1 in left_out and _UNDERLINE.fullmatch(shown)
        is_second_blank = not shown.strip() and not line.is_code and not (kept and kept[-1].strip())
        if number in left_out or goes_with_heading or is_second_blank:
            continue
        starts[line.start] = length
        kept.append(shown)
        length += len(shown) + 1
    moved = (
        dataclasses.replace(heading, start=starts[heading.start]) for heading in headings if heading.start in starts
    )
    shown_out = tuple(lines[number].shown.strip() for number in sorted(left_out))
    return Cleaned("\n".join(kept).rstrip("\n"), tuple(moved), shown_out)


def _count(text: str) -> int:
    return len(_LETTERS.findall(text))
