"""Finds what a prepared answer can be judged by."""

import re

from kraq_dspy.ports import IndexView
from kraq_dspy.records import AnswerEvidence, Chunk, FaqEntry


def evidence_for(index: IndexView, entry: FaqEntry, count: int = 3) -> list[AnswerEvidence]:
    """Return what an answer can be judged by: the passages that a program saw, else those of the
    sources that share the most words with question and answer."""
    if entry.evidence:
        return list(entry.evidence)
    answer_words = _words(f"{entry.question} {entry.answer}")
    chunks = [chunk for source in entry.sources for chunk in index.all(Chunk, document_id=source.document_id)]
    chunks.sort(key=lambda chunk: -len(answer_words & _words(chunk.passage)))
    return [AnswerEvidence.of(chunk) for chunk in chunks[:count]]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
