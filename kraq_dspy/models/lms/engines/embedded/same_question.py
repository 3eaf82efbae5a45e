"""Says whether two questions ask the same, by the encoder's cosine and shared words."""

import re
from collections.abc import Sequence

from kraq_dspy.models.lms.engines.embedded.answer import Similar
from kraq_dspy.models.lms.engines.embedded.text import content_words, words

NUMBERED = re.compile(r"^(\d+): ")
NO_MATCH = -1
FOUND, SURE = 0.6, 0.76
"""Least likeness of a question that is named, and of one that is confirmed, chosen by what passes of right and of wrong
pairs (docs/results/qa-search.md)."""


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
