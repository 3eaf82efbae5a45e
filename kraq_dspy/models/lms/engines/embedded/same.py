"""Says whether two described names mean one thing, by spelling, initials and shared words."""

import re

from rapidfuzz import fuzz

from kraq_dspy.models.lms.engines.embedded.text import content_words, words
from kraq_dspy.models.lms.engines.embedded.vocabulary import STOP


def same_thing(first: str, second: str) -> bool:
    """Each is "name: description", "name (type): description" or a name alone."""
    (one, about_one), (two, about_two) = _parted(first), _parted(second)
    tokens_one, tokens_two = _tokens(one), _tokens(two)
    if tokens_one == tokens_two:
        return True
    if _numbers(one) != _numbers(two):
        return False
    if _initials_of(one, two) or _initials_of(two, one):
        return True
    short, long = sorted((tokens_one, tokens_two), key=len)
    if short and short[0] == long[0] and short[-1] == long[-1]:
        return True  # a middle name or initial
    shared = _overlap(about_one, about_two)
    if set(short) < set(long):
        return shared >= 0.3  # a surname may be a namesake's: the descriptions must agree
    if len(short) == len(long) and len(short) > 1 and sum(a != b for a, b in zip(short, long, strict=True)) == 1:
        different = next((a, b) for a, b in zip(short, long, strict=True) if a != b)
        return fuzz.ratio(*different) >= 80 or _abbreviates(*different)
    return fuzz.ratio("".join(tokens_one), "".join(tokens_two)) >= 90


def _parted(text: str) -> tuple[str, str]:
    name, _, description = text.strip().partition("\n") if "\n" in text.strip() else text.strip().partition(": ")
    return re.sub(r"\s*\([^)]*\)\s*$", "", name).strip(), description


def _tokens(name: str) -> list[str]:
    return [word for word in words(name) if word not in STOP]


def _numbers(name: str) -> list[str]:
    return re.findall(r"\d+|\b[IVX]+\b", name)


def _initials_of(short: str, long: str) -> bool:
    letters = re.sub(r"[^\w]", "", short)
    initials = "".join(word[0] for word in _tokens(long))
    return 2 <= len(letters) <= 6 and letters.isupper() and letters.lower() == initials


def _abbreviates(one: str, two: str) -> bool:
    short, long = sorted((one, two), key=len)
    return len(short) <= 2 and long.startswith(short[0])


def _overlap(one: str, two: str) -> float:
    a, b = set(content_words(one)), set(content_words(two))
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0
