"""Makes an encoder of this library of a `dspy.Embedder`."""

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import dspy
import numpy as np

from kraq_dspy.errors import ModelError
from kraq_dspy.models.embedders.text_encoder import TextEncoder, unit_rows
from kraq_dspy.ports import Embedder, Vectors

EmbedderLike: TypeAlias = Embedder | dspy.Embedder
"""An encoder, or what `as_embedder` makes one of."""


def as_embedder(embedder: EmbedderLike) -> Embedder:
    """`embedder` itself where it is an encoder of this library, else an `AdaptedEmbedder` around it.

    Raises TypeError for anything else.
    """
    if isinstance(embedder, dspy.Embedder):
        return AdaptedEmbedder(embedder)
    lacking = [name for name in ("name", "dimension", "encode_queries", "encode_passages") if not _has(embedder, name)]
    if lacking:
        raise TypeError(
            f"embedder is {embedder!r:.80} ({type(embedder).__name__}), without {', '.join(lacking)}; expected a "
            "kraq_dspy.Embedder or a dspy.Embedder."
        )
    return cast(Embedder, embedder)


class AdaptedEmbedder(TextEncoder):
    """Encodes with a `dspy.Embedder`, queries and passages alike; rows are normalised here.

    `name` tells models apart in an index: that of a hosted model, or of the function and its module. Two lambdas of one
    module have one name; give them names of your own, or an index will not notice the change.
    """

    def __init__(self, embedder: dspy.Embedder) -> None:
        model: Any = embedder.model
        if not isinstance(model, str):
            owner = getattr(model, "__self__", None)
            kind = getattr(model, "__qualname__", type(model).__name__)
            model = f"{getattr(model, '__module__', None) or type(owner or model).__module__}.{kind}"
        self.name = f"{model} by dspy.Embedder"
        self._embedder = embedder

    def encode(self, texts: Sequence[str], prefix: str = "") -> Vectors:
        vectors: Vectors = np.asarray(self._embedder(list(texts)), np.float32)
        expected = "two axes" if self._dimension is None else f"rows of {self._dimension} numbers"
        if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.shape[1] != (self._dimension or vectors.shape[1]):
            raise ModelError(
                f"{self.name} made an array of shape {vectors.shape} of {len(texts)} texts; expected {expected}, one "
                "row for each text."
            )
        self._dimension = vectors.shape[1]
        return unit_rows(vectors, f"{self.name} made an embedding")


def _has(embedder: Any, name: str) -> bool:
    """Without asking a property, which may cost a call."""
    return hasattr(type(embedder), name) or name in getattr(embedder, "__dict__", {})
