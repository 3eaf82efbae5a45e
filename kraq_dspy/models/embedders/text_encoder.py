"""Defines what the encoders of this library share: two sides, each with its prefix, of one way to encode texts."""

from collections.abc import Sequence

import numpy as np

from kraq_dspy._internal.copies import SharedByCopies
from kraq_dspy.errors import ModelError
from kraq_dspy.ports import Vectors


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
        return self._vectors(texts, self.query_prefix)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self._vectors(texts, self.passage_prefix)

    def encode(self, texts: Sequence[str], prefix: str) -> Vectors:
        """float32 `[n_texts, dimension]`, rows L2-normalised, of one text or more."""
        raise NotImplementedError

    def _vectors(self, texts: Sequence[str], prefix: str) -> Vectors:
        if isinstance(texts, str):
            raise TypeError("Expected a list of texts, got one text.")
        return self.encode(texts, prefix) if texts else np.zeros((0, self.dimension), np.float32)

    def _named(self, *parts: str) -> str:
        """The parts, and the prefixes where there are any: vectors under different names must not be mixed."""
        prefixes = {"query": self.query_prefix, "passage": self.passage_prefix}
        return " ".join([*parts, *(f"{side}={prefix!r}" for side, prefix in prefixes.items() if prefix)])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def unit_rows(vectors: Vectors, maker: str) -> Vectors:
    """The rows L2-normalised. Raises ModelError, which begins with `maker`, where one is zero or not finite."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not norms.all():
        raise ModelError(f"{maker} that is zero or not finite.")
    normalised: Vectors = vectors / norms
    return normalised
