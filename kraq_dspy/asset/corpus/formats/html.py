"""Reads web pages: what a reader sees of them, a line for each block, in one pass whatever a page leaves open."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.corpus.boilerplate import PROSE, Linked, count_letters
from kraq_dspy.asset.corpus.formats.decode import decode_page, read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.html_hidden import INLINE, hides, is_decoration
from kraq_dspy.asset.corpus.formats.html_lists import NumberedList, begin_list
from kraq_dspy.asset.corpus.formats.html_parts import VOID, Part, parts_of
from kraq_dspy.asset.corpus.formats.html_tables import CELL, Table
from kraq_dspy.asset.corpus.formats.raised import CONTEXT, lowered, raised
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.records import Heading

CELLS = frozenset(("td", "th"))
LISTS = frozenset(("ol", "ul", "menu"))
KEEPS_LINES = frozenset(("pre", "textarea", "xmp"))
HEADINGS = {f"h{level}": level for level in range(1, 7)}
READINGS = frozenset(("rt", "rtc"))
WRITTEN_BETWEEN = {"msup": "^", "msub": "_", "mfrac": "/", "msubsup": "_", "munder": "_", "mover": "^"}
"""MathML whose second part would otherwise stand right behind its first."""

ENDS_BEFORE: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    **dict.fromkeys(("td", "th"), (CELLS, frozenset(("table",)))),
    "tr": (CELLS | {"tr", "caption"}, frozenset(("table",))),
    **dict.fromkeys(("tbody", "thead", "tfoot"), (CELLS | {"tr", "thead", "tbody", "caption"}, frozenset(("table",)))),
    "li": (frozenset(("li",)), LISTS),
    **dict.fromkeys(("dt", "dd"), (frozenset(("dt", "dd")), frozenset(("dl",)))),
    **dict.fromkeys(("rt", "rp", "rb", "rtc"), (frozenset(("rt", "rp", "rb")), frozenset(("ruby",)))),
}
"""By a tag: what it ends that is still open, since HTML lets one leave the end out, and how far out it reaches."""

_SPACES = re.compile(r"[ \t\n\f\r]+")
_PRIVATE = re.compile("[\ue000-\ue00f]")
_LINK_BEGINS, _LINK_ENDS = "\ue007", "\ue008"
_TERM, _MEANING = "\ue00d", "\ue00e"
_DEFINED = re.compile(f"\n?{_TERM}[ \t\n]*{_MEANING}[ \t\n]*")
"""Between a term of a list of definitions and its meaning, which stand on one line."""
_RAISED, _LOWERED, _BACK_ON_LINE = "\ue00a", "\ue00b", "\ue00c"
_OFF_LINE = re.compile(f"([{_RAISED}{_LOWERED}])([^{_RAISED}{_LOWERED}{_BACK_ON_LINE}\n]*){_BACK_ON_LINE}")
_LONGEST_LINK = 300  # characters; what goes on for longer was not closed, or is a paragraph
_DEEPEST_TABLE = 20  # of tables in tables; one further inside is read line by line
_FARTHEST_END = 50  # open tags that are looked through for one that a tag ends


@refuses_unreadable
def read_html(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The title is `<title>`. What nobody sees is left out, as scripts, navigation, and text that is hidden or struck
    out. Headings are kept with their places, cells of tables in their columns, and items of lists with their numbers.
    """
    source = decode_page(read_limited(path, settings), settings)
    row = page_row(source, normalised(path.stem))
    yield row or BadRow("The page shows no text; it may be filled in by a script. Save the page as a browser shows it.")


def page_row(source: str, name: str) -> Row | None:
    """The row of a page, called by `name` if it has no title; None if it shows no text."""
    page = Page()
    for part in parts_of(source):
        page.add(part)
    text, headings, linked = page.text()
    if not text:
        return None
    first = [heading.text for heading in headings if heading.level == 1]
    title = normalised(_SPACES.sub(" ", page.title)).strip() or (first[0] if len(first) == 1 else name)
    return Row(text, title=title, headings=headings, linked=linked)


@dataclass(slots=True)
class _Open:
    """A tag that was not closed yet, and what is to be undone when it is."""

    name: str
    hides: bool = False
    outer: list[str] | None = None  # where the pieces went before, where the tag gathers its own
    table: Table | None = None
    ends_with: str = ""
    decorates_from: int = -1  # number of the first piece inside, where those are dropped that have no letters
    n_children: int = 0  # counted of MathML alone


class Page:
    """Gathers what a reader sees, from the parts of a page in their order."""

    def __init__(self) -> None:
        self.title = ""
        self._all: list[str] = []
        self._pieces = self._all  # or those of the cell that is open
        self._open: list[_Open] = []
        self._counts: Counter[str] = Counter()  # how often each tag is open
        self._hidden = self._kept_lines = 0
        self._has_title = False
        self._tables: list[Table] = []
        self._lists: list[NumberedList | None] = []
        self._waiting_numbers: list[str] = []  # of items without text so far
        self._readings: list[str] = []

    def add(self, part: Part) -> None:
        if not part.name:
            self._add_text(part.text)
        elif part.is_end:
            self._close(part.name)
        else:
            self._begin(part)

    def _add_text(self, text: str) -> None:
        inside = self._open[-1].name if self._open else ""
        if inside == "title" and not self._has_title:
            self.title, self._has_title = text, True
        if self._hidden:
            return
        if not text.isspace():
            self._pieces += self._waiting_numbers
            self._waiting_numbers.clear()
        text = _PRIVATE.sub("", text)
        self._pieces.append(text if self._kept_lines else _SPACES.sub(" ", text))

    def _begin(self, tag: Part) -> None:
        self._end_what_ends_before(tag.name)
        attributes = tag.attributes() if tag.inside else {}
        self._pieces.append(_around(tag.name, in_table=bool(self._tables)))
        is_hidden = hides(tag, attributes)
        is_closed = tag.name in VOID or (tag.is_closed and tag.name not in LISTS)
        if not self._hidden and not is_hidden:
            self._write_beginning(tag, attributes)
        if is_closed:
            return

        opened = _Open(tag.name, hides=is_hidden)
        if not self._hidden and not is_hidden:
            self._prepare_end(opened, tag, attributes)
        self._open.append(opened)
        self._count(opened, 1)

    def _write_beginning(self, tag: Part, attributes: Mapping[str, str]) -> None:
        if tag.name in HEADINGS:
            self._pieces.append(chr(0xE000 + HEADINGS[tag.name]))
            if self._tables and not self._counts["th"]:
                self._tables[-1].is_layout = True
        if tag.name == "a" and "href" in attributes:
            self._pieces.append(_LINK_BEGINS)

        if self._open:
            self._write_between(self._open[-1])

        if tag.name == "tr" and self._tables:
            self._tables[-1].begin_row()
        if tag.name == "li" and self._lists and (numbered := self._lists[-1]):
            self._waiting_numbers.append(numbered.next(attributes.get("value", "")))

    def _write_between(self, parent: _Open) -> None:
        """Write what stands between the first two parts of a fraction and the like, and before a
        third one."""
        if parent.name not in WRITTEN_BETWEEN:
            return
        if parent.n_children == 1:
            self._pieces.append(WRITTEN_BETWEEN[parent.name])
        elif parent.n_children == 2:
            self._pieces.append("^")
        parent.n_children += 1

    def _prepare_end(self, opened: _Open, tag: Part, attributes: Mapping[str, str]) -> None:
        if tag.name == "table" and len(self._tables) < _DEEPEST_TABLE:
            for outer in self._tables[-1:]:
                outer.is_layout = True
            opened.table = Table(is_layout=attributes.get("role", "") in ("presentation", "none"))
            self._tables.append(opened.table)
            self._gather(opened, opened.table.around)
        elif tag.name in CELLS and self._tables:
            columns, rows = attributes.get("colspan", ""), attributes.get("rowspan", "")
            cell = self._tables[-1].begin_cell(columns, rows, is_header=tag.name == "th")
            self._gather(opened, cell.pieces)
        elif tag.name in LISTS:
            self._lists.append(begin_list(attributes) if tag.name == "ol" else None)
        elif tag.name in READINGS:
            self._gather(opened, self._readings)

        opened.ends_with = self._change_of_line(tag, attributes)
        if is_decoration(tag, attributes):
            opened.decorates_from = len(self._pieces)

    def _change_of_line(self, tag: Part, attributes: Mapping[str, str]) -> str:
        """Writes the mark that a raised or lowered stretch begins with; returns the one it ends with."""
        align = attributes.get("style", "").replace(" ", "").lower()
        if tag.name == "sup" or "vertical-align:super" in align:
            self._pieces.append(_RAISED)
            return _BACK_ON_LINE
        if tag.name == "sub" or "vertical-align:sub" in align:
            self._pieces.append(_LOWERED)
            return _BACK_ON_LINE
        if tag.name == "q":
            self._pieces.append("“")
            return "”"
        return ""

    def _gather(self, opened: _Open, pieces: list[str]) -> None:
        opened.outer = self._pieces
        self._pieces = pieces

    def _close(self, name: str) -> None:
        """Close a tag with what was left open inside. An end of what is not open changes nothing,
        but for `</p>` and the like."""
        if not self._counts[name]:
            self._pieces.append(_around(name, in_table=bool(self._tables)))
            return
        while self._open:
            last = self._open.pop()
            self._count(last, -1)
            self._end(last)
            if last.name == name:
                return

    def _end(self, last: _Open) -> None:
        if last.decorates_from >= 0 and not any(map(count_letters, self._pieces[last.decorates_from :])):
            del self._pieces[last.decorates_from :]
        self._pieces.append(last.ends_with)
        if not self._hidden and not last.hides:
            if last.name in HEADINGS:
                self._pieces.append("\ue000")
            if last.name == "a":
                self._pieces.append(_LINK_ENDS)
            if last.name in LISTS and self._lists:
                self._lists.pop()
            if last.name == "li":
                self._waiting_numbers.clear()

        if last.outer is not None:
            self._pieces = last.outer
        if last.table is not None:
            self._tables.pop()
            self._pieces += last.table.pieces()
        if last.name == "ruby" and self._readings:
            self._pieces.append(f"({''.join(self._readings).strip()})")
            self._readings.clear()
        self._pieces.append(_around(last.name, in_table=bool(self._tables)))

    def _end_what_ends_before(self, name: str) -> None:
        if self._open and self._open[-1].name == "p" and name not in INLINE:
            self._close("p")
        ended_names, limit = ENDS_BEFORE.get(name, ((), ()))
        if not any(self._counts[ended_name] for ended_name in ended_names):
            return

        for opened in self._open[: -_FARTHEST_END - 1 : -1]:
            if opened.name in limit:
                return
            if opened.name in ended_names:
                self._close(opened.name)
                self._end_what_ends_before(name)  # a cell, then its row
                return

    def _count(self, opened: _Open, step: int) -> None:
        self._counts[opened.name] += step
        self._hidden += step * opened.hides
        self._kept_lines += step * (opened.name in KEEPS_LINES)

    def text(self) -> tuple[str, tuple[Heading, ...], dict[int, Linked]]:
        """One line for a block, one space between words, cells of a table side by side; with the headings among them,
        and by where a line begins what of it is linked."""
        while self._open:
            self._close(self._open[-1].name)

        lines: list[str] = []
        headings: list[Heading] = []
        linked: dict[int, Linked] = {}
        start = level = 0
        link: int | None = None  # how long the one is that is open

        whole = _DEFINED.sub(": ", normalised("".join(self._all)))
        for line in _on_the_line(whole).split("\n"):
            marks = _PRIVATE.findall(line)
            level = max([level, *(ord(mark) - 0xE000 for mark in marks if mark < _LINK_BEGINS)])
            if link is not None or _LINK_BEGINS in marks:
                linked[start], link = _linked(line, link)

            tidy = _tidy(line)
            if tidy and level:
                headings.append(Heading(start, level, tidy))
            if tidy or "\ue000" in marks:
                level = 0
            if tidy:
                lines.append(tidy)
                start += len(tidy) + 1

        return "\n".join(lines), tuple(headings), linked


def _on_the_line(text: str) -> str:
    """The text with what is raised or lowered written on the line, the innermost first."""
    for _ in range(3):
        parts: list[str] = []
        place = 0
        for stretch in _OFF_LINE.finditer(text):
            parts.append(text[place : stretch.start()])
            before = "".join(parts[-2:])[-CONTEXT:].rpartition("\n")[2]
            after = text[stretch.end() : stretch.end() + CONTEXT].partition("\n")[0]
            after = "" if after.startswith((_RAISED, _LOWERED)) else _PRIVATE.sub("", after)
            inside, shown = stretch[2], _PRIVATE.sub("", before)
            if stretch[1] == _RAISED:
                is_link = _LINK_BEGINS in inside or before.endswith(_LINK_BEGINS)
                parts.append(raised(_PRIVATE.sub("", inside), shown, after, is_link=is_link))
            else:
                parts.append(lowered(_PRIVATE.sub("", inside), shown, after))
            place = stretch.end()

        if not parts:
            break
        text = "".join([*parts, text[place:]])
    return text


def _linked(line: str, link: int | None) -> tuple[Linked, int | None]:
    """Return what of the line is linked, where a link of that length is open at its start; and the
    one that is at its end."""
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


def _around(name: str, *, in_table: bool) -> str:
    if name in CELLS:
        return "" if in_table else "\t"
    if name in ("dt", "dd"):
        return "\n" + (_TERM if name == "dt" else _MEANING)
    return "" if name in INLINE else "\n"


def _tidy(line: str) -> str:
    """Cells without the spaces around them and between them a tab; words with one space between them.

    In a table every cell keeps its place, an empty one too, but for those at the end of a row.
    """
    keeps_places = CELL in line
    cells = _PRIVATE.sub("", line.replace(CELL, "\t")).split("\t")
    tidy = [re.sub(" +", " ", cell).strip(" ") for cell in cells]
    if not any(tidy):
        return ""
    return "\t".join(tidy).rstrip("\t") if keeps_places else "\t".join(filter(None, tidy))
