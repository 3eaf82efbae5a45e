"""Numbers the items of lists as Word does (ECMA-376, part 1, section 17.9): from their start, in their format."""

import re
from dataclasses import dataclass, field
from xml.etree import ElementTree

from kraq_dspy.asset.corpus.formats.docx_styles import Styles, W, find, value
from kraq_dspy.asset.corpus.formats.html_lists import written_number

_STYLE_OF = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}


@dataclass(slots=True)
class _List:
    """How the levels of a list are described, the counts, which lists of one description share, and where it starts
    again."""

    levels: dict[int, ElementTree.Element]
    counts: dict[int, int]
    restarts: dict[int, int] = field(default_factory=dict)

    def count(self, level: int) -> None:
        if level in self.restarts:
            self.counts[level] = self.restarts.pop(level)
        else:
            self.counts[level] = self.counts[level] + 1 if level in self.counts else self.start(level)
        for deeper in [each for each in self.counts if each > level]:
            del self.counts[deeper]

    def start(self, level: int) -> int:
        return _integer(value(find(self.levels.get(level), "start")), 1)

    def written(self, level: int) -> str:
        """The number of the last item of a level; "" for a bullet."""
        if _format(self.levels[level]) in ("bullet", "none"):
            return ""

        def number(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            count = self.counts.get(place, self.start(place))
            return written_number(count, _STYLE_OF.get(_format(self.levels.get(place)), "1"))

        return re.sub(r"%([1-9])", number, value(find(self.levels[level], "lvlText"))).strip()


class ListNumbers:
    """Counts the items of every list. `tree` is the part of the file that describes lists; None if there is none."""

    def __init__(self, tree: ElementTree.Element | None, styles: Styles) -> None:
        self._styles = styles
        self._lists: dict[str, _List] = {}
        if tree is None:
            return

        abstracts = {each.get(W + "abstractNumId"): each for each in tree.findall(W + "abstractNum")}
        counts: dict[str, dict[int, int]] = {}
        for number in tree.findall(W + "num"):
            abstract_id = value(find(number, "abstractNumId"))
            described = (*abstracts.get(abstract_id, ()), *number.iter(W + "lvl"))  # its own go before
            levels = {_integer(each.get(W + "ilvl", ""), -1): each for each in described if each.tag == W + "lvl"}
            numbered = _List(levels, counts.setdefault(abstract_id, {}))
            for override in number.findall(W + "lvlOverride"):
                if (start := find(override, "startOverride")) is not None:
                    numbered.restarts[_integer(override.get(W + "ilvl", ""), 0)] = _integer(value(start), 1)
            self._lists[number.get(W + "numId", "")] = numbered

    def next(self, paragraph: ElementTree.Element) -> str:
        """The number before this paragraph, as Word writes it; "" if it is no item of a numbered list, or shows
        nothing."""
        styles = self._styles.line(value(find(paragraph, "pPr", "pStyle")))
        places = [find(each, "pPr", "numPr") for each in (paragraph, *styles)]
        number_id, level = (
            next((value(named) for place in places if (named := find(place, name)) is not None), "")
            for name in ("numId", "ilvl")
        )
        numbered, place = self._lists.get(number_id), _integer(level, 0)
        if numbered is None or place not in numbered.levels or not any(each.text for each in paragraph.iter(W + "t")):
            return ""
        numbered.count(place)
        return numbered.written(place)


def _format(level: ElementTree.Element | None) -> str:
    return value(find(level, "numFmt"))


def _integer(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else default
