"""Numbers the items of a slide's lists as PowerPoint does (ECMA-376, part 1, section 21.1.2.4.1)."""

import re
from typing import Any

from kraq_dspy.asset.corpus.formats.html_lists import written_number

_KIND = re.compile(r"(arabic|alphaLc|alphaUc|romanLc|romanUc)(Period|ParenR|ParenBoth|Plain)")
_STYLES = {"arabic": "1", "alphaLc": "a", "alphaUc": "A", "romanLc": "i", "romanUc": "I"}
_AROUND = {"Period": "{}.", "ParenR": "{})", "ParenBoth": "({})", "Plain": "{}"}


class SlideNumbers:
    """Counts the items of the lists in one box, by their level."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[str, int]] = {}  # by level: the kind of its list, and the number of the last item

    def next(self, paragraph: Any) -> str:
        """The number before a paragraph (`a:p`) that has text, with a space; "" if it is no item of a numbered list."""
        properties = next((each for each in paragraph if str(each.tag).endswith("}pPr")), None)
        level = 0 if properties is None else int(properties.get("lvl", "0"))
        for deeper in [each for each in self._counts if each > level]:
            del self._counts[deeper]

        children = () if properties is None else tuple(properties)
        numbering = next((each for each in children if str(each.tag).endswith("}buAutoNum")), None)
        kind = _KIND.fullmatch(numbering.get("type", "")) if numbering is not None else None
        if numbering is None or kind is None:
            self._counts.pop(level, None)
            return ""

        start = int(numbering.get("startAt", "1"))
        name = f"{kind[0]} {start}"
        former, number = self._counts.get(level, ("", 0))
        self._counts[level] = name, number + 1 if former == name else start
        return _AROUND[kind[2]].format(written_number(self._counts[level][1], _STYLES[kind[1]])) + " "
