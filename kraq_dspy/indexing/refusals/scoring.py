"""Scores how much of a question the passages of an index hold, by their meaning and by its words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from kraq_dspy.asset.store.vectors.points import document_weights, numbers_of, words_of
from kraq_dspy.ports import Embedder, IndexView, Vectors
from kraq_dspy.records import Chunk

PASSAGES = 5
"""Passages nearest to a question in which its words are looked for."""
WORDS = 0.25
"""Weight of the words against the cosine: of 0, .25, .5 and 1 the best on clapnq; on lihua_world .13 better than 0."""
_BATCH = 256


@runtime_checkable
class CountsWords(Protocol):
    """A vector store that can say in how many of its texts words stand."""

    def texts_with(self, words: Sequence[str]) -> list[int]:
        """Count for each of the words, as `words_of` makes them, in how many texts it stands."""


@dataclass(frozen=True, slots=True)
class HeldScore:
    """How much of a question is held, and the passages nearest to it: (chunk id, cosine), best first.

    `value`, in [0, 1], is the cosine of the nearest passage and a quarter of the share of the question's words that one
    of the nearest has, rare words counting more, over 1.25. 0 if there are no passages.
    """

    value: float
    nearest: tuple[tuple[str, float], ...]


class PassageScorer:
    """Scores questions against the passages of an index, or of a view of it. No language model is asked.

    >>> from kraq_dspy import Workspace
    >>> with Workspace.open("ada.kraq") as space:
    ...     near, far = PassageScorer(space.index, space.embedder)(["Where did Ada live?", "Who won the cup?"])
    >>> near.value > far.value
    True

    Safe for threads.
    """

    def __init__(self, index: IndexView, embedder: Embedder) -> None:
        self._index, self._embedder = index, embedder

    def __call__(self, questions: Sequence[str], vectors: Vectors | None = None) -> list[HeldScore]:
        """Score in the order of the questions. `vectors` are their embeddings, where the caller has
        them."""
        scores: list[HeldScore] = []
        for start in range(0, len(questions), _BATCH):
            some = questions[start : start + _BATCH]
            rows = self._embedder.encode_queries(some) if vectors is None else vectors[start : start + _BATCH]
            nearest = self._index.chunk_vectors.search(rows, PASSAGES)
            scores += [self._score(question, hits) for question, hits in zip(some, nearest, strict=True)]
        return scores

    def of_each(self, question: str, chunks: Sequence[Chunk]) -> list[float]:
        """How much of the question each chunk alone holds, as `HeldScore.value` says it of the nearest ones."""
        if not chunks:
            return []
        [query] = self._embedder.encode_queries([question])
        cosines = self._index.chunk_vectors.vectors([chunk.id for chunk in chunks]) @ query

        shares = self._shares(question, chunks)
        return [_value(cosine, share) for cosine, share in zip(cosines.tolist(), shares, strict=True)]

    def by_words(self, question: str, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The chunks by BM25, best first; those with equal scores stay in their order."""
        weights = self._weights(question)
        numbers = numbers_of(list(weights))

        def score(chunk: Chunk) -> float:
            held = document_weights(chunk.passage)
            return sum(weight * held.get(number, 0.0) for number, weight in zip(numbers, weights.values(), strict=True))

        return sorted(chunks, key=score, reverse=True)

    def _score(self, question: str, hits: Sequence[tuple[str, float]]) -> HeldScore:
        if not hits:
            return HeldScore(0.0, ())

        shares = self._shares(question, self._index.chunks_by_id([chunk_id for chunk_id, _ in hits]))
        _, highest_cosine = hits[0]
        value = _value(highest_cosine, max(shares, default=0.0))
        return HeldScore(float(np.clip(value, 0.0, 1.0)), tuple(hits))

    def _shares(self, question: str, chunks: Sequence[Chunk]) -> list[float]:
        """The share of the question's words, by weight, that each passage has; 0 for a question without words."""
        weights = self._weights(question)
        total = sum(weights.values())
        held = [sum(weights[word] for word in weights.keys() & _words_in(chunk.passage)) for chunk in chunks]
        return [weight / total if total else 0.0 for weight in held]

    def _weights(self, question: str) -> dict[str, float]:
        """What each word of the question weighs: more, the fewer passages have it. All the same where the store cannot
        count."""
        words = list(dict.fromkeys(words_of(question)))
        store = self._index.chunk_vectors
        if not isinstance(store, CountsWords):
            return dict.fromkeys(words, 1.0)
        counts = store.texts_with(words)
        return {word: math.log(1 + self._n_passages / (1 + count)) for word, count in zip(words, counts, strict=True)}

    @cached_property
    def _n_passages(self) -> int:
        return self._index.count(Chunk)


def _value(cosine: float, share: float) -> float:
    return (cosine + WORDS * share) / (1 + WORDS)


@lru_cache(maxsize=1024)
def _words_in(passage: str) -> frozenset[str]:
    """The words of a passage. Kept, since the same passages are nearest to question after question."""
    return frozenset(words_of(passage))
