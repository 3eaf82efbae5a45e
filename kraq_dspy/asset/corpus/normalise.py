"""Writes text in one way, so that search, names and ids agree: for documents, file names and questions alike.

Personal details (e-mail addresses, phone and card numbers) are struck out here too, before anything else sees them.

>>> normalised("caf\\u0065\\u0301\\u00a0well\\u2011known")
'café well-known'
"""

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from kraq_dspy.records import Document
from kraq_dspy.settings import RedactSettings

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
_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]{0,60}[ -/]{0,9}[@-~]|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[()*+][0-9A-Z]|[@-Z^_=>])|[^\n\x08]\x08"
)
"""What a terminal obeys (ECMA-48), and a letter that another one was typed over."""
_UNSEEN = "\u115f\u1160\u200c\u200d\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef"
_BLANK = re.compile(f"[\\s\\x00-\\x1f\\x7f{_UNSEEN}{_INVISIBLE}]*")


def normalised(text: str) -> str:
    """The text in NFC, with plain spaces and hyphens, line ends as \\n, and no invisible characters but joiners. What
    only a terminal obeys, such as its codes of colours, is left out.

    NUL and lone surrogates, which stores refuse, become U+FFFD. What is normalised stays as it is.
    """
    if "\x1b" in text or "\b" in text:
        text = _TERMINAL.sub("", text).replace("\b", "")
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
    """The document with `change` made to its title and to its text.

    The text is changed section by section, so that each heading knows where its own section begins afterwards.
    """
    title = change(document.title)
    borders = [0, *(heading.start for heading in document.headings), len(document.text)]
    sections = [change(document.text[start:end]) for start, end in pairwise(borders)]
    text = "".join(sections)
    if (title, text) == (document.title, document.text):
        return document

    headings = []
    length_so_far = 0
    for heading, section_before in zip(document.headings, sections[:-1], strict=True):
        length_so_far += len(section_before)
        headings.append(dataclasses.replace(heading, start=length_so_far, text=change(heading.text)))
    return dataclasses.replace(document, title=title, text=text, headings=tuple(headings))


def is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen."""
    return _BLANK.fullmatch(text) is not None


EMAIL, PHONE, CARD = "e-mail address", "phone number", "card number"

_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_CARD = re.compile(r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d-])")
_PHONE = re.compile(
    r"(?<![\w.+/-])(?:"
    r"(?:\+|00)[1-9](?:[ ./()-]{0,2}\d){7,14}"  # with a country code
    r"|\(\d{2,5}\)[ .-]?\d{2,4}(?:[ .-]?\d{2,4}){1,3}"  # (212) 555-0147
    r"|\d{3}([.-])\d{3}\1\d{4}"  # 212-555-0147
    r"|0[1-9]\d{0,3}[ /-](?=(?:[ -]?\d){6})\d{2,8}(?:[ -]\d{2,5}){0,4}"  # 020 7946 0958
    r")(?![\w-])"
)


@dataclass(frozen=True, slots=True)
class PersonalSpan:
    """A stretch of text that names or reaches a person: `text[start:end]` is an EMAIL, a PHONE or a CARD."""

    kind: str
    start: int
    end: int


def find_personal(text: str) -> list[PersonalSpan]:
    """The personal details in order, without overlaps. Card numbers are those whose check digit is right.

    By form alone: phone numbers in unusual spelling are missed, and a number that looks like one is taken for one.
    """
    spans: list[PersonalSpan] = []
    for candidate in sorted(_candidates(text), key=lambda place: (place.start, -place.end)):
        if not spans or candidate.start >= spans[-1].end:
            spans.append(candidate)
    return spans


def redacted(text: str, settings: RedactSettings) -> str:
    """The text with "[e-mail address]" and the like in place of what the settings name."""
    replaced = {EMAIL: settings.emails, PHONE: settings.phones, CARD: settings.cards}
    parts, end = [], 0
    for personal in find_personal(text) if any(replaced.values()) else ():
        if replaced[personal.kind]:
            parts += [text[end : personal.start], f"[{personal.kind}]"]
            end = personal.end
    return "".join([*parts, text[end:]])


def redacted_document(document: Document, settings: RedactSettings) -> Document:
    """The document, redacted in title, text, metadata and what was left out. The id stays: it is how the corpus knows
    the document."""
    if settings == RedactSettings():
        return document

    document = rewritten(document, lambda text: redacted(text, settings))
    return dataclasses.replace(
        document,
        metadata={
            name: redacted(value, settings) if isinstance(value, str) else value
            for name, value in document.metadata.items()
        },
        left_out=tuple(redacted(line, settings) for line in document.left_out),
    )


def _candidates(text: str) -> Iterator[PersonalSpan]:
    if "@" in text:
        yield from (PersonalSpan(EMAIL, *match.span()) for match in _EMAIL.finditer(text))
    for match in _CARD.finditer(text):
        if _checks(match[0]):
            yield PersonalSpan(CARD, *match.span())
    yield from (PersonalSpan(PHONE, *match.span()) for match in _PHONE.finditer(text))


def _checks(number: str) -> bool:
    """Luhn's check."""
    digits = [int(character) for character in number if character.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[::-2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1
