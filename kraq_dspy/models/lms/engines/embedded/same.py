"""Says whether two described names mean one thing, and whether two questions ask the same."""

import re
from collections.abc import Sequence

from rapidfuzz import fuzz

from kraq_dspy.models.lms.engines.embedded.answer import Similar
from kraq_dspy.models.lms.engines.embedded.text import content_words, words
from kraq_dspy.models.lms.engines.embedded.vocabulary import STOP

NUMBERED = re.compile(r"^(\d+): ")
NO_MATCH = -1
FOUND, SURE = 0.6, 0.76
"""Least likeness of a question that is named, and of one that is confirmed, chosen by what passes of right and of wrong
pairs (docs/results/qa-search.md)."""


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


def matching_number(question: str, catalogue: Sequence[str], similar: Similar) -> int:
    """The number of the entry most like the question, -1 where none is like it."""
    entries = [(int(match[1]), line[match.end() :]) for line in catalogue if (match := NUMBERED.match(line))]
    scores = likenesses(question, [text for _, text in entries], similar)
    likeness, number = max(zip(scores, (number for number, _ in entries), strict=True), default=(0.0, NO_MATCH))
    return number if likeness >= FOUND else NO_MATCH


def is_same_question(question: str, stored: str, similar: Similar) -> bool:
    return not _has_other_word(question, stored) and likenesses(question, [stored], similar)[0] >= SURE


def _has_other_word(question: str, stored: str) -> bool:
    """Whether the two are alike word for word but for one that carries meaning: "the red boat", "the blue boat"."""
    first, second = words(question), words(stored)
    if len(first) != len(second):
        return False
    apart = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    if len(apart) != 1:
        return False
    one, other = (content_words(word) for word in apart[0])
    return bool(one and other) and one != other


def likenesses(question: str, others: Sequence[str], similar: Similar) -> list[float]:
    """Of each of `others`, in [0, 1]: cosine, and the share of content words that both have."""
    question_words = set(content_words(question))
    scores = []
    for cosine, other in zip(similar(question, others), others, strict=True):
        bag = set(content_words(other))
        shared = 2 * len(question_words & bag) / (len(question_words) + len(bag) or 1)
        scores.append(0.8 * max(0.0, float(cosine)) + 0.2 * shared)
    return scores
