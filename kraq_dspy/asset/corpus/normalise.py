"""Writes text in one way, so that search, names and ids agree: for documents, file names and questions alike.

>>> normalised("caf\\u0065\\u0301\\u00a0well\\u2011known")
'café well-known'
"""

import dataclasses
import re
import unicodedata
from collections.abc import Callable
from itertools import accumulate, pairwise

from kraq_dspy.records import Document

_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_LINE_ENDS = "\u000b\u0085\u2028\u2029"
_HYPHENS = "\u2010\u2011"
_INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064"
    "\u2066\u2067\u2068\u2069\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"
)
"""Soft hyphens, zero-width spaces, marks of direction. Joiners stay: Persian, Hindi and emoji are spelt with them."""
_TAGS = "".join(map(chr, range(0xE0000, 0xE0080)))  # with which text is written so that only a model reads it

_ONE_WAY: dict[int, str | None] = {
    **dict.fromkeys(map(ord, _SPACES), " "),
    **dict.fromkeys(map(ord, _LINE_ENDS), "\n"),
    **dict.fromkeys(map(ord, _HYPHENS), "-"),
    **dict.fromkeys(map(ord, _INVISIBLE + _TAGS)),
}
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
_UNSEEN = "\u115f\u1160\u200c\u200d\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef"
_BLANK = re.compile(f"[\\s\\x00-\\x1f\\x7f{_UNSEEN}{_INVISIBLE}]*")


def normalised(text: str) -> str:
    """The text in NFC, with plain spaces and hyphens, line ends as \\n, and no invisible characters but joiners.

    NUL and lone surrogates, which stores refuse, become U+FFFD. What is normalised stays as it is.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        text = text.replace("\v", "\n") if "\v" in text else text
        return text.replace("\x00", "\ufffd") if "\x00" in text else text
    text = _UNUSABLE.sub("\ufffd", text)
    previous = ""
    while previous != text:  # what is taken out may have stood between a letter and its accent
        previous, text = text, unicodedata.normalize("NFC", text.translate(_ONE_WAY))
    return text


def normalised_document(document: Document) -> Document:
    """The document with its title and text normalised."""
    return rewritten(document, normalised)


def rewritten(document: Document, change: Callable[[str], str]) -> Document:
    """The document with `change` made to its title and, section by section, to its text, so that each heading knows
    where its own begins now."""
    starts = [heading.start for heading in document.headings]
    sections = [document.text[start:end] for start, end in pairwise([0, *starts, len(document.text)])]
    parts = list(map(change, sections))
    title, text = change(document.title), "".join(parts)
    if (title, text) == (document.title, document.text):
        return document
    places = accumulate(map(len, parts))
    headings = (
        dataclasses.replace(heading, start=place, text=change(heading.text))
        for heading, place in zip(document.headings, places, strict=False)
    )
    return dataclasses.replace(document, title=title, text=text, headings=tuple(headings))


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen."""
    return _BLANK.fullmatch(text) is not None
