"""Says where the sentences of a text begin and end, in any script."""

import re

ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st sr jr vs no vol fig gen col lt sgt capt rev hon gov sen rep pres dept univ approx "  # noqa: SIM905
    "ca cf eg ie al jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k u.n d.c e.g i.e a.m p.m ph.d".split()
)
_BREAK = re.compile(r"(?<=[.!?…])[\"”’')\]]*\s+|(?<=[。！？؟।])[」』”\"]*\s*|\n+")
_CLOSING = "\"”’')]"


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) in characters, in order, white space at the edges left out; none for a text of white space.

    A line break ends a sentence; a common abbreviation, an initial or a stop before a lower-case word does not.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    breaks = [place.end() for place in _BREAK.finditer(text) if "\n" in place[0] or _ends(text, place)]
    for end in [*breaks, len(text)]:
        sentence = text[start:end]
        if sentence.strip():
            spans.append((start + len(sentence) - len(sentence.lstrip()), start + len(sentence.rstrip())))
        start = end
    return spans


def _ends(text: str, place: re.Match[str]) -> bool:
    before = text[max(0, place.start() - 40) : place.start()].rstrip(_CLOSING)
    if not before.endswith("."):
        return True
    last = before.rsplit(None, 1)[-1].rstrip(".!?…").lower()
    if last in ABBREVIATIONS or (len(last) == 1 and last.isalpha()):
        return False
    return not text[place.end() : place.end() + 1].islower()
