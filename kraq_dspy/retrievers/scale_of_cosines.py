"""Puts the cosines of any encoder on the scale for which the weights of meaning and words were chosen: MiniLM's."""

from functools import cached_property

import numpy as np

from kraq_dspy._internal.one_blas_thread import product
from kraq_dspy.ports import Vectors, VectorStore

LOW, SPREAD = 0.03, 0.13
"""The lower quartile and the standard deviation that a question's cosines with passages drawn by chance are given.

MiniLM's are .03 and .11. The spread was chosen on parts of popqa and multihop_rag (benchmarks/results/retrieval.md).
"""

UNRELATED = 0.2
"""A quartile up to which nothing is moved: MiniLM's own differ with the question and the corpus."""

_SAMPLE, _FEWEST = 256, 20  # passages
_NOISE = 1e-4  # how far rounding alone may spread equal cosines


class ScaleOfCosines:
    """Standardises cosines over the passages of a store, for an encoder that puts unrelated texts near each other.

    A question and a passage that have nothing in common have a cosine of .1 by MiniLM and of .75 by E5, whose cosines
    all lie between .7 and .95. Mixed with other scores they would hardly tell passages apart. A sample of the store's
    passages says where a question's cosines begin, by their lower quartile, and how far they spread.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> vector = space.embedder.encode_queries(["Where did Ada live?"])[0]
    >>> scale = ScaleOfCosines(space.index.chunk_vectors)
    >>> scale(np.array([0.1, 0.5]), vector).tolist()
    [0.1, 0.5]
    """

    def __init__(self, vectors: VectorStore) -> None:
        self._vectors = vectors

    def __call__(self, cosines: Vectors, question: Vectors) -> Vectors:
        """`cosines` of passages with the question's vector, in the same order; as they are for an encoder like MiniLM,
        and in a store of a few passages."""
        if not len(cosines) or cosines.min() <= UNRELATED or len(self._sample) < _FEWEST:
            return cosines

        by_chance = product(self._sample, question)
        low, spread = np.quantile(by_chance, 0.25), by_chance.std()
        if low <= UNRELATED or spread < _NOISE:
            return cosines
        standardised: Vectors = LOW + SPREAD * (cosines - low) / spread
        return standardised

    @cached_property
    def _sample(self) -> Vectors:
        """Ids are hashes of contents, so that any in even steps are drawn by chance."""
        ids = sorted(self._vectors.ids())
        step = max(1, len(ids) // _SAMPLE)
        return self._vectors.vectors(ids[::step][:_SAMPLE])
