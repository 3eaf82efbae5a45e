"""Verdicts by overlap: how much of what should be there is there, and a probability made of it."""

from collections.abc import Sequence

from kraq_dspy.lms.engines.embedded.text import content_words, words


def support(claim: str, evidence: str) -> float:
    """Share of the claim's content words that the evidence has, in [0, 1]; 0 for a claim without any."""
    wanted = set(content_words(claim))
    return len(wanted & set(content_words(evidence))) / len(wanted) if wanted else 0.0


def agreement(answer: str, references: Sequence[str]) -> float:
    """How well the answer gives one of the references, in [0, 1]: 1 when it contains one word for word, else the best
    F1 of their words."""
    said = words(answer)
    best = 0.0
    for reference in references:
        wanted = words(reference)
        if not wanted:
            continue
        if any(said[i : i + len(wanted)] == wanted for i in range(len(said) - len(wanted) + 1)):
            return 1.0
        common = len(set(said) & set(wanted))
        best = max(best, 2 * common / (len(set(said)) + len(set(wanted))) if common else 0.0)
    return best


def probability(share: float) -> float:
    """A share in [0, 1] as a probability that is never certain: 0.05 to 0.95."""
    return 0.05 + 0.9 * min(max(share, 0.0), 1.0)
