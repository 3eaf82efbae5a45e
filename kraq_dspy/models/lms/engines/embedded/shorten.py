"""Chooses whole sentences, and writes none, for a text in fewer words or for what a graph has to say."""

from kraq_dspy.models.lms.engines.embedded.answer import Similar, nearest
from kraq_dspy.models.lms.engines.embedded.text import centralities, clipped, distinct, sentences

TOLD = 12  # sentences of an account


def shortened(text: str, words: int) -> str:
    """The sentences that share most with the others, as many as fit, in reading order; the first one cut short where
    none fits."""
    parts = distinct(sentences(text))
    left = words
    kept: set[str] = set()
    scores = dict(zip(parts, centralities(parts), strict=True))
    for part in sorted(parts, key=lambda part: -scores[part]):
        length = len(part.split())
        if length <= left:
            kept.add(part)
            left -= length
    return " ".join(part for part in parts if part in kept) or clipped(parts[0] if parts else text, words)


def account(question: str, texts: list[str], similar: Similar) -> str:
    """The sentences nearest to the question, nearest first, with their titles; "" where no word of it occurs. Titles
    that only list names (our own) are left out."""
    lines = []
    for part in nearest(question, texts, similar, count=TOLD):
        known = not part.title or "; " in part.title or part.title in part.text
        lines.append(part.text if known else f"{part.title}: {part.text}")
    return "\n".join(distinct(lines))
