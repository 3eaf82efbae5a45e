"""Says where the sentences of a text begin and end."""

import re

_END = re.compile(r"[.!?…][\"”’')\]]*(?=\s)|[。！？][」』”]*|\n+")
_NO_END = re.compile(r"(?:^|[\s(])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|Gen|St|Jr|Sr|vs|cf|No|Inc|Ltd|Co|Fig|etc|e\.g|i\.e)\.$")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) in characters, in order, white space at the edges left out; none for a text of white space.

    A line break ends a sentence; a common abbreviation, an initial or a stop before a lower-case word does not.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for end in [*(place.end() for place in _END.finditer(text) if _ends(text, place)), len(text)]:
        sentence = text[start:end]
        if sentence.strip():
            spans.append((start + len(sentence) - len(sentence.lstrip()), start + len(sentence.rstrip())))
        start = end
    return spans


def _ends(text: str, place: re.Match[str]) -> bool:
    if not place[0].startswith("."):
        return True
    if text[place.end() :].lstrip(" \t")[:1].islower():
        return False
    return not _NO_END.search(text, max(0, place.start() - 8), place.start() + 1)
