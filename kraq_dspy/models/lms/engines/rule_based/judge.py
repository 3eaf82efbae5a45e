"""Judges by overlap: whether evidence supports a claim, two names mean one thing, two questions ask the same."""

import re
from collections.abc import Sequence

from rapidfuzz import fuzz

from kraq_dspy.language.text import content_words, words
from kraq_dspy.language.vocabulary import STOP
from kraq_dspy.models.lms.engines.rule_based.answer import Similar

NUMBERED = re.compile(r"^(\d+): ")
NO_MATCH = -1
FOUND, SURE = 0.6, 0.76
"""Least likeness of a question that is named, and of one that is confirmed, chosen by what passes of right and of wrong
pairs (docs/results/qa-search.md)."""


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
    """Whether two names have the same words or the same letters, but for a few, or the one is the other's initials.

    Each is "name: description", "name (type): description" or a name alone; numbers must be the same.
    """
    one, two = (re.split(r"\s*\([^)]*\):|: |\n", text.strip())[0] for text in (first, second))
    in_one, in_two = ([word for word in words(name) if word not in STOP] for name in (one, two))
    if in_one == in_two:
        return True
    if re.findall(r"\d+|\b[IVX]+\b", one) != re.findall(r"\d+|\b[IVX]+\b", two):
        return False
    if one.isupper() != two.isupper():
        short, full = (one, in_two) if one.isupper() else (two, in_one)
        return len(short) > 1 and short.lower() == "".join(word[0] for word in full)
    return fuzz.ratio("".join(in_one), "".join(in_two)) >= 90


def matching_number(question: str, catalogue: Sequence[str], similar: Similar) -> int:
    """The number of the entry most like the question, -1 where none is like it."""
    entries = [(int(match[1]), line[match.end() :]) for line in catalogue if (match := NUMBERED.match(line))]
    scores = likenesses(question, [text for _, text in entries], similar)
    likeness, number = max(zip(scores, (number for number, _ in entries), strict=True), default=(0.0, NO_MATCH))
    return number if likeness >= FOUND else NO_MATCH


def is_same_question(question: str, stored: str, similar: Similar) -> bool:
    """Whether the two are alike, and not word for word but for one: "the red boat", "the blue boat"."""
    first, second = words(question), words(stored)
    if len(first) == len(second):
        apart = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
        if len(apart) == 1:
            one, other = map(content_words, apart[0])
            if one and other and one != other:
                return False
    return likenesses(question, [stored], similar)[0] >= SURE


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
