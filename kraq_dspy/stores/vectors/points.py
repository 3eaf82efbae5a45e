"""Defines what both vector stores share: points in batches, their words' weights, and ties in the order of the ids."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kraq_dspy.errors import EncoderMismatchError, UnknownRecordError
from kraq_dspy.ports import Filters, Vectors
from kraq_dspy.stores.sync import batches
from kraq_dspy.stores.tags import alternatives, tags_of

BATCH = 1000
"""Points written at once; a killed process leaves whole batches."""

DENSE, SPARSE, TAGS = "dense", "bm25", "tags"
_SPARE = 8  # hits asked for beyond k, so that ties at the end can be seen

Hits = list[tuple[str, float]]
Weights = tuple[list[int], list[float]]
"""Words by number, and what each weighs."""


class PointStore(ABC):
    """A `ports.VectorStore` over an engine, which the abstract methods name in its own words."""

    def __init__(self, dimension: int, language: str) -> None:
        self.dimension = dimension
        self._words = WordWeights(language)

    def upsert(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        texts: Sequence[str] | None = None,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        rows = checked_vectors(vectors, self.dimension, len(ids))
        for places in batches(range(len(ids)), BATCH):
            points = []
            for i in places:
                vector: dict[str, Any] = {DENSE: rows[i].tolist()}
                if texts is not None and (weights := self._words.of_document(texts[i])):
                    vector[SPARSE] = self._sparse(weights)
                points.append(self._point(ids[i], vector, {TAGS: tags_of(payloads[i]) if payloads else []}))
            self._write(points)

    def delete(self, ids: Collection[str]) -> None:
        for gone in batches(ids, BATCH):
            self._remove(gone)

    def ids(self) -> set[str]:
        point_ids: set[str] = set()
        offset = None
        while True:
            records, offset = self._page(offset)
            point_ids.update(_hex_id(record.id) for record in records)
            if offset is None:
                return point_ids

    def vectors(self, ids: Sequence[str]) -> Vectors:
        by_id: dict[str, Any] = {}
        for some in batches(ids, BATCH):
            by_id.update((_hex_id(record.id), record.vector[DENSE]) for record in self._records(some))
        if missing := [point_id for point_id in ids if point_id not in by_id]:
            raise UnknownRecordError(f"No vector is stored for the id {missing[0]!r}.")
        return np.array([by_id[point_id] for point_id in ids], dtype=np.float32).reshape(len(ids), self.dimension)

    def search(
        self, vectors: Vectors, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[Hits]:
        rows = checked_vectors(vectors, self.dimension)
        return self._best([row.tolist() for row in rows], DENSE, k, exclude, filters)

    def search_text(self, text: str, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None) -> Hits:
        weights = self._words.of_query(text)
        hits = self._best([self._sparse(weights)] if weights else [], SPARSE, k, exclude, filters)
        return hits[0] if hits else []

    def _best(
        self, queries: Sequence[Any], using: str, k: int, exclude: Collection[str], filters: Filters | None
    ) -> list[Hits]:
        condition = self._condition(alternatives(filters), exclude)

        def ask(places: Sequence[int], limit: int) -> list[Hits]:
            replies = self._query([queries[place] for place in places], using, limit, condition)
            return [[(_hex_id(point.id), float(point.score)) for point in points] for points in replies]

        return best_hits(ask, len(queries), k)

    @abstractmethod
    def _sparse(self, weights: Weights) -> Any:
        """Weighted words as a vector."""

    @abstractmethod
    def _point(self, point_id: str, vector: dict[str, Any], payload: dict[str, list[str]]) -> Any: ...

    @abstractmethod
    def _write(self, points: list[Any]) -> None: ...

    @abstractmethod
    def _remove(self, ids: list[str]) -> None: ...

    @abstractmethod
    def _page(self, offset: Any) -> tuple[Iterable[Any], Any]:
        """Some points, and where the next ones begin; None after the last."""

    @abstractmethod
    def _records(self, ids: list[str]) -> Iterable[Any]:
        """Those of the points that there are, with their dense vectors."""

    @abstractmethod
    def _condition(self, one_of: list[list[str]], exclude: Collection[str]) -> Any:
        """What a point must meet: a tag of each list of `one_of`, and an id that is not in `exclude`."""

    @abstractmethod
    def _query(self, queries: list[Any], using: str, limit: int, condition: Any) -> Iterable[Iterable[Any]]:
        """The points found by each vector."""


class WordWeights:
    """Text as BM25 term weights, or None for a text without words."""

    def __init__(self, language: str) -> None:
        from qdrant_edge import Bm25, Bm25Config, TokenizerType

        # The tokenizer by words takes a sentence of Chinese or Japanese for one word.
        self._model = Bm25(Bm25Config(language=language, tokenizer=TokenizerType.Multilingual, ascii_folding=True))

    def of_document(self, text: str) -> Weights | None:
        return self._weights(self._model.embed_document, text)

    def of_query(self, text: str) -> Weights | None:
        return self._weights(self._model.embed_query, text)

    @staticmethod
    def _weights(embed: Callable[[str], Any], text: str) -> Weights | None:
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


def _hex_id(point_id: Any) -> str:
    return str(point_id).replace("-", "")


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


def other_dimension(where: str, stored: int, dimension: int) -> str:
    return (
        f"{where} holds {stored}-dimensional vectors, and {dimension}-dimensional ones were given. "
        "Use the encoder that the index was built with, or index again with this one."
    )
