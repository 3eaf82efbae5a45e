"""Defines what both vector stores share: a point's parts, its words' weights, and ties in the order of the ids."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kraq_dspy.errors import EncoderMismatchError, UnknownRecordError
from kraq_dspy.ports import Vectors

BATCH = 1000
"""Points written at once; a killed process leaves whole batches."""

DENSE, SPARSE, TAGS = "dense", "bm25", "tags"
_SPARE = 8  # hits asked for beyond k, so that ties at the end can be seen

Hits = list[tuple[str, float]]


class WordWeights:
    """Text as BM25 term weights: (indices, values), or None for a text without words."""

    def __init__(self, language: str) -> None:
        from qdrant_edge import Bm25, Bm25Config, TokenizerType

        # The tokenizer by words takes a sentence of Chinese or Japanese for one word.
        self._model = Bm25(Bm25Config(language=language, tokenizer=TokenizerType.Multilingual, ascii_folding=True))

    def of_document(self, text: str) -> tuple[list[int], list[float]] | None:
        return self._weights(self._model.embed_document, text)

    def of_query(self, text: str) -> tuple[list[int], list[float]] | None:
        return self._weights(self._model.embed_query, text)

    @staticmethod
    def _weights(embed: Callable[[str], Any], text: str) -> tuple[list[int], list[float]] | None:
        sparse = embed(text.encode("utf-8", "replace").decode("utf-8"))  # lone surrogates become "?"
        return (sparse.indices, sparse.values) if sparse.indices else None


def best_hits(ask: Callable[[Sequence[int], int], list[Hits]], n_rows: int, k: int) -> list[Hits]:
    """The `k` best hits of each row, ties in the order of the ids.

    An engine orders ties as it likes, also those at place k. So more hits are asked for, until the last one scores
    less than the one at place k.
    """
    if k < 1:
        raise ValueError(f"k is {k}; it must be 1 or more.")
    best: list[Hits] = [[] for _ in range(n_rows)]
    open_rows = list(range(n_rows))
    limit = k + _SPARE
    while open_rows:
        tied = []
        for row, hits in zip(open_rows, ask(open_rows, limit), strict=True):
            hits.sort(key=lambda hit: (-hit[1], hit[0]))
            if len(hits) == limit and hits[k - 1][1] == hits[-1][1]:
                tied.append(row)
            else:
                best[row] = hits[:k]
        open_rows = tied
        limit *= 4
    return best


def hits_of(replies: Any) -> list[Hits]:
    return [[(hex_id(point.id), float(point.score)) for point in points] for points in replies]


def hex_id(point_id: Any) -> str:
    return str(point_id).replace("-", "")


def batches(n: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + BATCH, n)) for start in range(0, n, BATCH))


def checked_vectors(vectors: Vectors, dimension: int, n_rows: int | None = None) -> Vectors:
    rows = np.asarray(vectors, dtype=np.float32)
    if rows.ndim != 2:
        raise ValueError(f"Vectors have the shape {rows.shape}; expected [n, {dimension}].")
    if rows.shape[1] != dimension and len(rows):
        raise EncoderMismatchError(other_dimension("The store", dimension, rows.shape[1]))
    if n_rows is not None and len(rows) != n_rows:
        raise ValueError(f"{n_rows} ids but {len(rows)} vectors.")
    if not np.isfinite(rows).all():
        raise ValueError("A vector holds a value that is not finite; the encoder that made it is at fault.")
    return rows


def stacked(ids: Sequence[str], by_id: Mapping[str, Any], dimension: int) -> Vectors:
    for point_id in ids:
        if point_id not in by_id:
            raise UnknownRecordError(f"No vector is stored for the id {point_id!r}.")
    return np.array([by_id[point_id] for point_id in ids], dtype=np.float32).reshape(len(ids), dimension)


def other_dimension(where: str, stored: int, given: int) -> str:
    return (
        f"{where} holds {stored}-dimensional vectors, and {given}-dimensional ones were given. "
        "Use the encoder that the index was built with, or index again with this one."
    )
