"""Weighs words for BM25 and checks vectors, for both vector stores."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kraq_dspy.errors import EncoderMismatchError
from kraq_dspy.ports import Vectors

Weights = tuple[list[int], list[float]]
"""Words by number, and what each weighs."""


class WordWeights:
    """Text as BM25 term weights, with English stop words and stems; None for a text without words."""

    def __init__(self) -> None:
        from qdrant_edge import Bm25, Bm25Config, TokenizerType

        # The tokenizer by words takes a sentence of Chinese or Japanese for one word.
        self._model = Bm25(Bm25Config(language="english", tokenizer=TokenizerType.Multilingual, ascii_folding=True))

    def of_document(self, text: str) -> Weights | None:
        return self._weights(self._model.embed_document, text)

    def of_query(self, text: str) -> Weights | None:
        return self._weights(self._model.embed_query, text)

    @staticmethod
    def _weights(embed: Callable[[str], Any], text: str) -> Weights | None:
        sparse = embed(text.encode("utf-8", "replace").decode("utf-8"))  # lone surrogates become "?"
        return (sparse.indices, sparse.values) if sparse.indices else None


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
