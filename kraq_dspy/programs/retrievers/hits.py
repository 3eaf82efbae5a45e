"""What every retriever does at its two ends: refuse what makes no sense, and turn ids and scores into hits."""

import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from kraq_dspy.ports import ChunkSource, Filters
from kraq_dspy.records import Chunk, Hit

Scored = list[tuple[str, float]]
"""Chunk ids with scores, best first."""


class Retrieving:
    """A retriever keeps nothing between calls, so copies of a program share it, with the stores and the graph it reads.

    dspy's optimizers copy programs deeply; a copied index would be a second process on the same files.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def check_request(question: str, k: int) -> None:
    """Raises ValueError for what no retriever can answer."""
    if not question.strip():
        raise ValueError(f"The question is {question!r}; expected some text.")
    if k < 1:
        raise ValueError(f"k is {k}; expected 1 or more passages.")


def to_hits(chunks: ChunkSource, scored: Sequence[tuple[str, float]], query: str, why: str) -> list[Hit]:
    """One hit for each (chunk id, score), in their order."""
    found = chunks.chunks_by_id([chunk_id for chunk_id, _ in scored])
    return [Hit(chunk, score, query, why) for chunk, (_, score) in zip(found, scored, strict=True)]


def best_first(scores: dict[str, float], k: int) -> Scored:
    """The `k` highest of `scores`; ties by id, so that the same question always gets the same answer."""
    return heapq.nsmallest(k, scores.items(), key=lambda item: (-item[1], item[0]))


def falling(hits: Sequence[Hit]) -> list[Hit]:
    """The same hits in the same order, none with a higher score than the one before it."""
    lowered: list[Hit] = []
    for hit in hits:
        limit = lowered[-1].score if lowered else hit.score
        lowered.append(hit if hit.score <= limit else replace(hit, score=limit))
    return lowered


def matches(chunk: Chunk, filters: Filters | None) -> bool:
    """Whether a chunk meets all `filters`, as the stores see it: 1 and 1.0 are equal, 1 and True are not."""
    known = {**chunk.metadata, "document_id": chunk.document_id}
    for key, wanted in (filters or {}).items():
        values = wanted if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
        if key not in known or not any(_equal(known[key], value) for value in values):
            return False
    return True


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other and isinstance(one, bool) == isinstance(other, bool))
