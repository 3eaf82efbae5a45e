"""Reads what kind of thing the title of a passage names, and whether a name is that of somebody."""

import re
from collections.abc import Sequence

from kraq_dspy.embedded.asking.templates import Definition, definition, is_person
from kraq_dspy.embedded.names import PERSON, is_name, kind_of, without_words
from kraq_dspy.embedded.value import BRACKETED
from kraq_dspy.language.text import parted, sentences
from kraq_dspy.language.told import language_of
from kraq_dspy.language.vocabulary import OPENERS, STOP

OF_SOMEBODY = re.compile(r"\b(?:he|she|his|her|him|born|died|Mr|Mrs|Ms|Dr|Sir)\b", re.IGNORECASE)
"""What is said of people alone."""
KIND_WORDS = 3
_SAID_NEXT = 200  # characters from a name on in which the text speaks of its bearer


def read_passage(passage: str) -> tuple[str, list[str], str, bool]:
    """Title, sentences, what kind of thing the title is said to be ("" unknown), and whether it is
    somebody."""
    title, body = parted(passage)
    if language_of(body) != "en":
        return "", [], "", False

    body = re.sub(r" (?=[,.;:?!’'](?:\s|$|s\b))", "", body)
    title = title if title and is_name(title) else ""
    bare = BRACKETED.sub("", title)
    parts = sentences(body)
    defined = first_definition(parts[:2], bare) if bare else None
    if defined is None or bare not in defined.name:
        return bare, parts, "", bool(bare) and is_somebody(bare, body)

    kind = plain_kind(defined.kind)
    return bare, parts, kind, is_person(kind, parts[0], bare)


def first_definition(parts: Sequence[str], title: str) -> Definition | None:
    titles = [title] if title else []
    for part in parts:
        defined = definition(part, titles)
        if defined is not None:
            return defined
    return None


def plain_kind(kind: str) -> str:
    """The last words of a kind that can follow "which": "English poet" of "famous and English poet born"."""
    words = re.split(r" (?:[a-z]+ed|born|made|built|held|set|written|known)\b", kind)[0].split()[-KIND_WORDS:]
    while words and (words[0].lower() in STOP or words[0].endswith("est") or not words[0][0].isalpha()):
        words = words[1:]
    is_plain = bool(words) and not words[-1][0].isupper() and not re.search(r"[\"“”()\d]", " ".join(words))
    return " ".join(words) if is_plain else ""


def is_somebody(name: str, text: str) -> bool:
    """Whether a full name is a person's, or a last name is that of a person whom the text names in full.

    Two words with capitals may be a heading as well: where the text writes the last one small, too, it has to speak of
    somebody.

    >>> is_somebody("Ada Lovelace", "Ada Lovelace met Charles Babbage.")
    True
    >>> is_somebody("Settings", "Index Settings hold the settings.")
    False
    """
    is_full = PERSON.fullmatch(name) is not None
    full = name if is_full else _full_name(name, text)
    if not full or kind_of(full, text) != "person":
        return False

    last_name_is_a_name = bool(without_words([full.split()[-1]], text))
    said_next = text[text.find(full) :][:_SAID_NEXT]
    return last_name_is_a_name or OF_SOMEBODY.search(said_next) is not None


def _full_name(last: str, text: str) -> str:
    """Return the first name of two or three words in the text that ends in this one; "" for none."""
    names: list[str] = PERSON.findall(text)
    for full in names:
        if full.endswith(f" {last}") and full.split()[0] not in OPENERS:
            return full
    return ""
