"""Judges by overlap: whether evidence supports a claim, two names mean one thing, two questions ask the same."""

import re
from collections.abc import Sequence

from rapidfuzz import fuzz

from kraq_dspy.embedded.answer import Similar
from kraq_dspy.language.text import content_words, words
from kraq_dspy.language.vocabulary import STOP

NUMBERED = re.compile(r"^(\d+): ")
NO_MATCH = -1
_NUMERAL = re.compile(r"\d+|\b[IVX]+\b")
NAMED, CONFIRMED = 0.6, 0.76
"""Least likeness of a question that is named, and of one that is confirmed, chosen by what passes of right and of wrong
pairs (benchmarks/results/qa-search.md)."""


def support(claim: str, evidence: str) -> float:
    """Share of the claim's content words that the evidence has, in [0, 1]; 0 for a claim without any."""
    claim_words = set(content_words(claim))
    return len(claim_words & set(content_words(evidence))) / len(claim_words) if claim_words else 0.0


def agreement(answer: str, references: Sequence[str]) -> float:
    """Rate how well the answer gives one of the references, in [0, 1]: 1 when it contains one word
    for word, else the best F1 of their words."""
    own = words(answer)
    best = 0.0
    for reference in references:
        expected = words(reference)
        if not expected:
            continue
        if any(own[i : i + len(expected)] == expected for i in range(len(own) - len(expected) + 1)):
            return 1.0

        common = len(set(own) & set(expected))
        best = max(best, 2 * common / (len(set(own)) + len(set(expected))) if common else 0.0)
    return best


def same_thing(first: str, second: str) -> bool:
    """Whether two names have the same words or the same letters, but for a few, or the one is the
    other's initials.

    Each is "name: description", "name (type): description" or a name alone; numbers must be the same.
    """
    first, second = _name_in(first), _name_in(second)
    first_words, second_words = _telling_words(first), _telling_words(second)
    if first_words == second_words:
        return True
    if _NUMERAL.findall(first) != _NUMERAL.findall(second):
        return False

    if first.isupper() != second.isupper():
        if first.isupper():
            return _are_initials(first, second_words)
        return _are_initials(second, first_words)
    return fuzz.ratio("".join(first_words), "".join(second_words)) >= 90


def _name_in(text: str) -> str:
    return re.split(r"(?<!\s)\s*+\([^()]*\):|: |\n", text.strip())[0]


def _telling_words(name: str) -> list[str]:
    return [word for word in words(name) if word not in STOP]


def _are_initials(short: str, full: Sequence[str]) -> bool:
    return len(short) > 1 and short.lower() == "".join(word[0] for word in full)


def matching_number(question: str, faq: Sequence[str], similar: Similar) -> int:
    """The number of the entry most like the question, -1 if none is like it."""
    numbers, stored = [], []
    for line in faq:
        number = NUMBERED.match(line)
        if number:
            numbers.append(int(number[1]))
            stored.append(line[number.end() :])

    scores = likenesses(question, stored, similar)
    likeness, best = max(zip(scores, numbers, strict=True), default=(0.0, NO_MATCH))
    return best if likeness >= NAMED else NO_MATCH


def is_same_question(question: str, stored: str, similar: Similar) -> bool:
    """Whether the two are alike, and not word for word but for one: "the red boat", "the blue
    boat"."""
    first, second = words(question), words(stored)
    if len(first) == len(second):
        apart = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
        if len(apart) == 1:
            ours, theirs = map(content_words, apart[0])
            if ours and theirs and ours != theirs:
                return False
    return likenesses(question, [stored], similar)[0] >= CONFIRMED


def likenesses(question: str, others: Sequence[str], similar: Similar) -> list[float]:
    """Score each of `others` in [0, 1] by its cosine and the share of content words that both
    have."""
    question_words = set(content_words(question))
    scores = []
    for cosine, other in zip(similar(question, others), others, strict=True):
        bag = set(content_words(other))
        shared = 2 * len(question_words & bag) / (len(question_words) + len(bag) or 1)
        scores.append(0.8 * max(0.0, float(cosine)) + 0.2 * shared)
    return scores
