"""Leaves out of web pages what is no part of their text: menus, lists of links, cookie notices, where links lead.

It recognizes a line of links by its letters and a notice by its words. It recognizes lines near
them, such as the names of menus, because they are short or occur in other pages too. Text that is
no page of links keeps every line but the buttons of notices.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
_ITEM = re.compile(r"\A[\s>]*(?:(?:[*+-]|\d{1,3}[.)])\s+)?(?:\[[ xX]\]\s*)?")
_LETTERS = re.compile(r"[^\W_]")
_WORDS = re.compile(r"\w+")
_ADDRESS = re.compile(r"\bhttps?://\S+")
_HEADING = re.compile(r"[\s>]*(?:[*+-]\s+)?(#{1,6})\s")
_UNDERLINE = re.compile(r"[\s>]*(={2,}|-{2,})\s*")
_BUTTON = re.compile(
    r"(cookies? settings )?(accept|reject|allow|decline)( all| only)?( optional| necessary)? cookies"
    r"|(skip|jump) to (main |page )?(content|navigation)",
    re.IGNORECASE,
)
_PART_OF_NOTICE = re.compile(
    r"(manage|view|confirm)( all| my)? (cookies|choices|consent)( preferences| settings)?"
    r"|cookies? (settings|policy|preferences|consent|notice|list|details)"
    r"|(strictly necessary|performance|functional|targeting|analytics|advertising) cookies"
    r"|share this( (page|article|story|post))?|(the )?wayback machine -?|advertisement|newsletters?|subscribe( now)?"
    r"|(please |you must )?(log|sign) ?(in|up|out)( now| or (register|sign ?up|log ?in))?( to \w+( or \w+)?)?",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    r"\b(we|our|us|this (web)?site|these|by (clicking|continuing))\b.{0,200}\bcookies?\b|all rights reserved"
    r"|\bcookies?\b.{0,80}\b(we|our|this (web)?site|device)\b|\bprivacy (policy|notice)\b|\benable javascript\b"
    r"|\b(subscribe|sign(ing|ed)? up) (to|for|using)\b|\b(unsubscribe|opt out) at any time\b|\baffiliate commission\b"
    r"|\byour (email|inbox)\b|\byour (personal )?(data|information)\b|\bnewsletters\b|\bno spam\b"
    r"|\b(log|sign) ?(in|up) to (join|comment)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Linked:
    """How many letters of a line are in links, of those that are no paragraphs, and how many links it has."""

    letters: int = 0
    links: int = 0


_NONE: Mapping[int, Linked] = {}


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text without boilerplate, with the headings that are left; and the lines that were left out, as shown."""

    text: str
    headings: tuple[Heading, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    """A line as it is `written` and `shown` to a reader, where it begins in the text, and its `words`, by which equal
    lines are known. `level` is that of a heading, 0 for another line."""

    written: str
    shown: str
    words: str
    start: int
    level: int = 0
    letters: int = 0
    linked: Linked = Linked()
    is_code: bool = False

    @property
    def is_links(self) -> bool:
        return self.linked.links > 0 and self.linked.letters >= LINKED * self.letters

    @property
    def is_blank(self) -> bool:
        return not self.letters and not self.is_code

    @property
    def bare(self) -> str:
        return _bare(self.shown)

    @property
    def is_short(self) -> bool:
        return len(self.bare.encode()) <= SHORT and not self.bare.endswith(".")


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
        self._pages = Counter[int]({hash(_words(line)): REPEATED for line in known})

    def add(self, text: str, linked: Mapping[int, Linked] = _NONE) -> None:
        if _is_page(text, linked):
            self._pages.update(
                {hash(line.words) for line in _lines(text, linked, {}) if line.letters and not line.is_links}
            )

    def __contains__(self, words: str) -> bool:
        return self._pages[hash(words)] >= REPEATED


def cleaned(
    text: str, repeated: RepeatedLines, headings: Sequence[Heading] = (), linked: Mapping[int, Linked] = _NONE
) -> Cleaned:
    """The text without boilerplate; as it is where nothing would be left. `linked` says what is linked of the line that
    begins at a place, for a text without Markdown that does.

    >>> cleaned("Accept all cookies\\nIt opened in 1874.", RepeatedLines()).text
    'It opened in 1874.'
    """
    is_page = _is_page(text, linked)
    lines = list(_lines(text, linked, {heading.start: heading.level for heading in headings}))
    if is_page:
        left_out = _boilerplate(lines, repeated)
    else:
        left_out = {number for number, line in enumerate(lines) if line.letters and _BUTTON.fullmatch(line.bare)}
        if not left_out:
            return Cleaned(text, tuple(headings))

    result = _without(lines, left_out, headings, as_written=not is_page)
    return result if result.text.strip() else Cleaned(text, tuple(headings))


def _is_page(text: str, linked: Mapping[int, Linked]) -> bool:
    return len(linked) >= RUN or sum(1 for _ in _WEB_LINK.finditer(text)) >= PAGE_LINKS


def _lines(text: str, linked: Mapping[int, Linked], levels: Mapping[int, int]) -> Iterator[_Line]:
    """Every line of the text, in order. `levels` are those of its headings by where they begin, as
    far as known."""
    start, open_fence = 0, ""
    for written, following in pairwise([*text.split("\n"), ""]):
        fence = _FENCE.match(written)
        if fence or open_fence:
            yield _Line(written, written, "", start, is_code=True)
        else:
            shown, links = written, linked.get(start, Linked())
            if "](" in written:
                shown, links = _shown(written)
            letters = count_letters(_ITEM.sub("", shown))
            level = levels.get(start) or _level(shown, following)
            words = _words(shown) if letters else ""
            yield _Line(written, shown, words, start, level, letters, links)

        if fence:
            open_fence = "" if open_fence == fence[1] else open_fence or fence[1]
        start += len(written) + 1


def _level(line: str, following: str) -> int:
    """Tell the level of a heading in Markdown; 0 if the line is none."""
    if match := _HEADING.match(line):
        return len(match[1])
    underline = _UNDERLINE.fullmatch(following)
    return 0 if underline is None or not line.strip() else 1 if underline[1][0] == "=" else 2


def _shown(line: str) -> tuple[str, Linked]:
    """A line of Markdown without images and without where its links lead."""
    unpictured = _IMAGE.sub("", line)
    links = [count_letters(link) for link in _LINK.findall(unpictured)]
    return _LINK.sub(r"\1", unpictured), Linked(sum(length for length in links if length <= PROSE), len(links))


def _boilerplate(lines: Sequence[_Line], repeated: RepeatedLines) -> set[int]:
    """Numbers of the lines to leave out."""
    visible = []
    for number, line in enumerate(lines):
        if not line.is_blank and not _UNDERLINE.fullmatch(line.shown):
            visible.append(number)

    certain = set(_lists_of_links(lines, visible))
    certain.update(number for number in visible if _is_control(lines[number], repeated))

    shown = [lines[number] for number in visible]
    left_out = [number in certain for number in visible]
    _leave_out_neighbours(shown, left_out, repeated)
    _leave_out_between(shown, left_out, repeated)
    _leave_out_bare_headings(shown, left_out)
    return {number for number, is_left_out in zip(visible, left_out, strict=True) if is_left_out}


def _is_control(line: _Line, repeated: RepeatedLines) -> bool:
    """Whether the line is a button, or a part of a notice that other pages have too."""
    if line.is_code:
        return False
    if _BUTTON.fullmatch(line.bare) or _PART_OF_NOTICE.fullmatch(line.bare):
        return True
    return _NOTICE.search(line.shown) is not None and line.words in repeated


def _leave_out_neighbours(lines: Sequence[_Line], left_out: list[bool], repeated: RepeatedLines) -> None:
    """Leave out short repeated lines that stand behind boilerplate, then those that stand before."""
    forwards, backwards = range(len(lines)), range(len(lines) - 1, -1, -1)
    for order in (forwards, backwards):
        previous = False
        for place in order:
            line = lines[place]
            if not left_out[place] and previous and line.is_short and line.words in repeated:
                # A heading goes with what stands below it.
                left_out[place] = not line.level or order is backwards
            previous = left_out[place]


def _leave_out_between(lines: Sequence[_Line], left_out: list[bool], repeated: RepeatedLines) -> None:
    """Leave out what stands alone between boilerplate: links, repeated and short lines."""
    for place in range(1, len(lines) - 1):
        line = lines[place]
        if not left_out[place - 1] or not left_out[place + 1]:
            continue
        if line.is_links or line.words in repeated or (line.is_short and not line.level):
            left_out[place] = True


def _leave_out_bare_headings(lines: Sequence[_Line], left_out: list[bool]) -> None:
    """Leave out headings of whose section nothing is left."""
    level = 1  # that of the next heading which is kept, where nothing stands before it
    for place in range(len(lines) - 2, 0, -1):
        line = lines[place]
        if left_out[place]:
            continue
        if left_out[place + 1] and line.is_short and 0 < level <= line.level:
            left_out[place] = True
        else:
            level = line.level


def _lists_of_links(lines: Sequence[_Line], seen: Sequence[int]) -> Iterator[int]:
    run: list[int] = []
    before = ""
    for number in [*seen, -1]:
        if number >= 0 and lines[number].is_links and not lines[number].shown.lstrip().startswith("|"):
            run.append(number)
            continue
        n_links = sum(lines[place].linked.links for place in run)
        introduced = before.rstrip().endswith((":", "：")) and len(_WORDS.findall(before)) >= INTRODUCTION
        if n_links >= RUN and not introduced:
            yield from run
        run, before = [], lines[number].shown


def _without(lines: Sequence[_Line], left_out: set[int], headings: Sequence[Heading], *, as_written: bool) -> Cleaned:
    """The lines that are not left out, one empty line at most between two, each heading with its new place."""
    starts: dict[int, int] = {}
    written: list[str] = []
    length = 0
    for number, line in enumerate(lines):
        shown = line.written if as_written else line.shown
        goes_with_heading = number - 1 in left_out and _UNDERLINE.fullmatch(shown)
        is_second_blank = not shown.strip(" \t") and not line.is_code and not (written and written[-1].strip())
        if number in left_out or goes_with_heading or is_second_blank:
            continue

        starts[line.start] = length
        written.append(shown)
        length += len(shown) + 1

    moved = []
    for heading in headings:
        if heading.start in starts:
            moved.append(dataclasses.replace(heading, start=starts[heading.start]))
    lines_left_out = tuple(lines[number].shown.strip() for number in sorted(left_out))
    return Cleaned("\n".join(written).rstrip("\n"), tuple(moved), lines_left_out)


def _bare(shown: str) -> str:
    """Strip a line of marks of lists and emphasis, and of addresses."""
    return _ADDRESS.sub("", _ITEM.sub("", shown)).strip(" \t#*_!>")


def _words(shown: str) -> str:
    return " ".join(_WORDS.findall(_bare(shown).lower()))


def count_letters(text: str) -> int:
    """Letters and digits."""
    return len(_LETTERS.findall(text))
