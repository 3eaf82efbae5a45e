"""Finds e-mail addresses, phone numbers and card numbers, and strikes them out before anything else sees them."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kraq_dspy.asset.corpus.normalise import rewritten
from kraq_dspy.records import Document
from kraq_dspy.settings import RedactSettings

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
    """In order, without overlaps. Card numbers are those whose check digit is right.

    By form alone: phone numbers in unusual spelling are missed, and a number that looks like one is taken for one.
    """
    spans: list[PersonalSpan] = []
    for candidate in sorted(_candidates(text), key=lambda one: (one.start, -one.end)):
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
    """In its title, text and metadata. The id stays: it is how the corpus knows the document."""
    if settings == RedactSettings():
        return document
    document = rewritten(document, lambda text: redacted(text, settings))
    return dataclasses.replace(
        document,
        metadata={
            name: redacted(value, settings) if isinstance(value, str) else value
            for name, value in document.metadata.items()
        },
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
