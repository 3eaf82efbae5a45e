"""Judges by overlap: how much of what should be there is there, and a probability made of it."""

from collections.abc import Sequence

from kraq_dspy.models.lms.engines.embedded.text import content_words, words


def support(claim: str, evidence: str) -> float:
    """Share of the claim's content words that the evidence has, in [0, 1]; 0 for a claim without any."""
    claim_words = set(content_words(claim))
    return len(claim_words & set(content_words(evidence))) / len(claim_words) if claim_words else 0.0


def agreement(answer: str, references: Sequence[str]) -> float:
    """How well the answer gives one of the references, in [0, 1]: 1 when it contains one word for word, else the best
    F1 of their words."""
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


def probability(share: float) -> float:
    """A share in [0, 1] as a probability that is never certain: 0.05 to 0.95."""
    return 0.05 + 0.9 * min(max(share, 0.0), 1.0)
