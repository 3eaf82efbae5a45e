"""Summarises several passages by the sentences that share most with the others, each from its own passage first."""

from kraq_dspy.models.lms.engines.embedded.summarize import central
from kraq_dspy.models.lms.engines.embedded.text import clipped, distinct, parted, sentences

SENTENCES = 8


def passages_summary(passages: list[str]) -> str:
    """At most eight sentences, titles in front of those that do not have them; the first words where there are none."""
    parts: list[str] = []
    for passage in passages:
        title, body = parted(passage)
        parts += [f"{title}: {part}" if title and title not in part else part for part in sentences(body)]
    parts = distinct(parts)
    return " ".join(clipped(part, 60) for part in central(parts, SENTENCES)) or clipped(" ".join(passages))
