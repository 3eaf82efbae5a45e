"""Numbers the items of lists as Word does (ECMA-376, part 1, section 17.9): from their start, in their format."""

import copy
import re
from xml.etree import ElementTree

from kraq_dspy.asset.corpus.formats.docx_styles import Styles, W, find, is_on, value
from kraq_dspy.asset.corpus.formats.html_lists import written_number

_STYLE_OF = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}
_WITHOUT_NUMBER = ("bullet", "none")


class ListNumbers:
    """Counts the items of every list. `tree` is the part of the file that describes lists; None if there is none."""

    def __init__(self, tree: ElementTree.Element | None, styles: Styles) -> None:
        self.tree = tree
        self._styles = styles
        abstracts = [] if tree is None else tree.findall(W + "abstractNum")
        numbers = [] if tree is None else tree.findall(W + "num")
        self._abstract_of = {each.get(W + "abstractNumId", ""): each for each in abstracts}
        self._number_of = {each.get(W + "numId", ""): each for each in numbers}
        self._counts: dict[str, dict[int, int]] = {}
        self._started: set[tuple[str, int]] = set()

    def next(self, paragraph: ElementTree.Element) -> str:
        """The number before this paragraph, as Word writes it; "" if it is no item of a numbered list."""
        number_id, level = self._place(paragraph)
        number = self._number_of.get(number_id)
        if number is None or is_on(find(paragraph, "pPr", "rPr", "vanish")) or _is_deleted(paragraph):
            return ""
        abstract_id = self._abstract_id(number)
        if self._level(number, abstract_id, level) is None:
            return ""

        counts = self._counts.setdefault(abstract_id, {})
        override = self._override(number, level)
        start = find(override, "startOverride")
        if start is not None and (number_id, level) not in self._started:
            counts[level] = _integer(value(start), 1)
        else:
            counts[level] = counts[level] + 1 if level in counts else self._start(number, abstract_id, level)
        self._started.add((number_id, level))
        for deeper in [each for each in counts if each > level]:
            del counts[deeper]
        return self._written(number, abstract_id, level, counts)

    def without_numbers(self) -> bytes:
        """The part of the file with bullets alone, so that nobody numbers again."""
        assert self.tree is not None
        bullets = copy.deepcopy(self.tree)
        for parent in bullets.iter():
            for level in parent.findall(W + "lvl"):
                if value(find(level, "numFmt")) != "bullet":
                    parent.remove(level)
        return ElementTree.tostring(bullets)

    def _place(self, paragraph: ElementTree.Element) -> tuple[str, int]:
        """The list of a paragraph and its level, by itself or by its style."""
        own = find(paragraph, "pPr", "numPr")
        style_id = value(find(paragraph, "pPr", "pStyle"))
        line = [find(style, "pPr", "numPr") for style in self._styles.line(style_id)]
        properties = [each for each in (own, *line) if each is not None]
        number_id = next((value(found) for each in properties if (found := find(each, "numId")) is not None), "")
        named = next((value(found) for each in properties if (found := find(each, "ilvl")) is not None), None)
        if named is None:
            number = self._number_of.get(number_id)
            named = "0" if number is None else self._level_of_style(self._abstract_id(number), style_id)
        return number_id, _integer(named, 0)

    def _level_of_style(self, abstract_id: str, style_id: str) -> str:
        levels = self._abstract_of[abstract_id].findall(W + "lvl") if abstract_id in self._abstract_of else []
        return next(
            (each.get(W + "ilvl", "0") for each in levels if style_id and value(find(each, "pStyle")) == style_id), "0"
        )

    def _abstract_id(self, number: ElementTree.Element) -> str:
        """The description of a list, also where it only names a style that has one."""
        abstract_id = value(find(number, "abstractNumId"))
        link = value(find(self._abstract_of.get(abstract_id), "numStyleLink"))
        if link:
            for style in self._styles.line(link):
                linked = self._number_of.get(value(find(style, "pPr", "numPr", "numId")))
                if linked is not None and linked is not number:
                    return value(find(linked, "abstractNumId"))
        return abstract_id

    def _override(self, number: ElementTree.Element, level: int) -> ElementTree.Element | None:
        return next((each for each in number.findall(W + "lvlOverride") if each.get(W + "ilvl") == str(level)), None)

    def _level(self, number: ElementTree.Element, abstract_id: str, level: int) -> ElementTree.Element | None:
        overridden = find(self._override(number, level), "lvl")
        if overridden is not None:
            return overridden
        abstract = self._abstract_of.get(abstract_id)
        levels = [] if abstract is None else abstract.findall(W + "lvl")
        return next((each for each in levels if each.get(W + "ilvl") == str(level)), None)

    def _start(self, number: ElementTree.Element, abstract_id: str, level: int) -> int:
        return _integer(value(find(self._level(number, abstract_id, level), "start")), 1)

    def _written(self, number: ElementTree.Element, abstract_id: str, level: int, counts: dict[int, int]) -> str:
        described = self._level(number, abstract_id, level)
        if value(find(described, "numFmt")) in _WITHOUT_NUMBER or is_on(find(described, "rPr", "vanish")):
            return ""
        is_legal = is_on(find(described, "isLgl"))

        def count(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            style = "decimal" if is_legal else value(find(self._level(number, abstract_id, place), "numFmt"))
            return _formatted(counts.get(place, self._start(number, abstract_id, place)), style)

        return re.sub(r"%([1-9])", count, value(find(described, "lvlText"))).strip()


def _formatted(number: int, style: str) -> str:
    if style == "bullet":
        return ""
    if style == "decimalZero":
        return f"{number:02}"
    return written_number(number, _STYLE_OF.get(style, "1"))


def _is_deleted(paragraph: ElementTree.Element) -> bool:
    """Whether a tracked change deletes the paragraph with its end, and nothing of it is left."""
    is_marked = find(paragraph, "pPr", "rPr", "del") is not None
    return is_marked and not any(each.text for each in paragraph.iter(W + "t"))


def _integer(text: str, default: int) -> int:
    return int(text) if re.fullmatch(r"-?\d{1,9}", text) else default
