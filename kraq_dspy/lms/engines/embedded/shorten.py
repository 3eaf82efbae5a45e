"""Chooses whole sentences, and writes none, for a text in fewer words or for what a graph has to say."""

from collections import Counter

from kraq_dspy.lms.engines.embedded.answer import Similar, nearest
from kraq_dspy.lms.engines.embedded.text import clipped, content_words, distinct, sentences

TOLD = 12  # sentences of an account


def shortened(text: str, words: int) -> str:
    """The sentences that share most with the others, as many as fit, in reading order; the first one cut short where
    none fits."""
    parts = distinct(sentences(text))
    left = words
    kept: set[str] = set()
    for part in _most_central_first(parts):
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


def _most_central_first(parts: list[str]) -> list[str]:
    """By how often their words are said in all, long sentences at no advantage."""
    bags = [set(content_words(part)) for part in parts]
    counts = Counter(word for bag in bags for word in bag)
    scores = [sum(counts[word] - 1 for word in bag) / (4 + len(bag)) for bag in bags]
    return [parts[place] for place in sorted(range(len(parts)), key=lambda place: (-scores[place], place))]
