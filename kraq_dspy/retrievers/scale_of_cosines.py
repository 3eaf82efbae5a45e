"""Puts the cosines of any encoder on the scale for which the weights of meaning and words were chosen."""

from functools import cached_property

import numpy as np

from kraq_dspy._internal.one_blas_thread import product
from kraq_dspy.ports import Vectors, VectorStore

UNRELATED = 0.2
"""Above MiniLM's cosines of questions with passages that have nothing to do with them: .05 to .12 on average."""

_SAMPLE = 256  # passages
_QUARTER = 0.25  # of the sample, at least, has nothing to do with a question


class ScaleOfCosines:
    """Moves the zero of cosines to where unrelated passages lie in this store, for an encoder that puts them higher.

    Encoders differ: a question and a passage that have nothing in common have a cosine of .1 by MiniLM and of .75 by
    E5, whose cosines all lie between .7 and .95. Mixed with other scores they would hardly tell passages apart. The
    lower quartile of a sample of the store's passages says where a question's zero is. Up to `UNRELATED` nothing is
    moved, so MiniLM's cosines stay what they are.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> vector = space.embedder.encode_queries(["Where did Ada live?"])[0]
    >>> scale = ScaleOfCosines(space.index.chunk_vectors)
    >>> 0 <= scale.zero(vector) < 0.1
    True
    """

    def __init__(self, vectors: VectorStore) -> None:
        self._vectors = vectors

    def __call__(self, cosines: Vectors, question: Vectors) -> Vectors:
        """`cosines` of passages with the question's vector; 1 stays 1."""
        if not len(cosines) or cosines.min() <= UNRELATED:  # the encoder uses that part of the scale, too
            return cosines
        zero = self.zero(question)
        return (cosines - zero) / (1 - zero)

    def zero(self, question: Vectors) -> float:
        """How far a quarter of the sampled passages is above `UNRELATED`; 0 if it is not."""
        cosines = product(self._sample, question)
        return max(0.0, float(np.quantile(cosines, _QUARTER)) - UNRELATED)

    @cached_property
    def _sample(self) -> Vectors:
        """Ids are hashes of contents, so that any in even steps are drawn by chance."""
        ids = sorted(self._vectors.ids())
        step = max(1, len(ids) // _SAMPLE)
        return self._vectors.vectors(ids[::step][:_SAMPLE])
