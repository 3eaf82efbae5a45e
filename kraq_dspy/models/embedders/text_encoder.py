"""Defines what the encoders of this library share, two sides, each with its prefix, of one way to encode texts; and
makes one of a `dspy.Embedder`."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias, cast

import dspy
import numpy as np

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.recent import Recent
from kraq_dspy.errors import ModelError, counted
from kraq_dspy.ports import Embedder, Vectors

REMEMBERED = 256
"""Questions whose vectors an encoder keeps."""


class TextEncoder(SharedByCopies):
    """A `ports.Embedder` whose classes say how texts are encoded behind a prefix (`encode`)."""

    name: str
    query_prefix = ""
    passage_prefix = ""

    _dimension: int | None = None

    @property
    def dimension(self) -> int:
        """Learned from a word, the first time that it is asked for."""
        if self._dimension is None:
            self._dimension = self.encode(["dimension"], "").shape[1]
        return self._dimension

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """A single question is encoded once: its retrievers and the search for next questions ask for it again."""
        if isinstance(texts, str) or len(texts) != 1:
            return self._vectors(texts, self.query_prefix)

        vectors = self._recent.of(texts, lambda new: [self._vectors(new, self.query_prefix)])
        return vectors[0].copy()  # the caller's own, to change

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self._vectors(texts, self.passage_prefix)

    def encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        """float32 `[n_texts, dimension]`, rows L2-normalised, of one text or more."""
        raise NotImplementedError

    @cached_property
    def _recent(self) -> Recent[str, Vectors]:
        return Recent(REMEMBERED)

    def _vectors(self, texts: Sequence[str], prefix: str) -> Vectors:
        if isinstance(texts, str):
            raise TypeError("Expected a list of texts, got one text.")
        return self.encode(texts, prefix) if texts else np.zeros((0, self.dimension), np.float32)

    def _named(self, *parts: str) -> str:
        """The parts, and the prefixes if there are any: vectors under different names must not be mixed."""
        prefixes = {"query": self.query_prefix, "passage": self.passage_prefix}
        return " ".join([*parts, *(f"{side}={prefix!r}" for side, prefix in prefixes.items() if prefix)])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def unit_rows(vectors: Vectors, maker: str) -> Vectors:
    """The rows L2-normalised. Raises ModelError, which begins with `maker`, if one is zero or not finite."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not norms.all():
        raise ModelError(f"{maker} that is zero or not finite.")
    normalised: Vectors = vectors / norms
    return normalised


EmbedderLike: TypeAlias = Embedder | dspy.Embedder
"""An encoder, or what `as_embedder` makes one of."""


def as_embedder(embedder: EmbedderLike) -> Embedder:
    """Return `embedder` if it is an encoder of this library, otherwise an `AdaptedEmbedder` around it.

        build_index("poets/", "poets.kraq", embedder=as_embedder(dspy.Embedder("openai/text-embedding-3-small")))

    Raises TypeError for anything that is no encoder.
    """
    if isinstance(embedder, dspy.Embedder):
        return AdaptedEmbedder(embedder)

    # no property is asked, which may cost a call
    known = {*dir(type(embedder)), *getattr(embedder, "__dict__", {})}
    lacking = [name for name in ("name", "dimension", "encode_queries", "encode_passages") if name not in known]
    if lacking:
        raise TypeError(
            f"embedder is {embedder!r:.80} ({type(embedder).__name__}), without {', '.join(lacking)}; expected a "
            "kraq_dspy.extend.Embedder or a dspy.Embedder."
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
                f"{self.name} made an array of shape {vectors.shape} of {counted(len(texts), 'text')}; "
                f"expected {expected}, one row for each text."
            )
        self._dimension = vectors.shape[1]
        return unit_rows(vectors, f"{self.name} made an embedding")
