"""Retrieves what is relevant and unlike what was already taken (MMR: Carbonell & Goldstein, SIGIR 1998)."""

from dataclasses import dataclass, replace

import numpy as np

from kraq_dspy._internal.options import require_between, require_counts
from kraq_dspy.ports import Embedder, Retriever, VectorStore
from kraq_dspy.programs.retrievers.adapted import as_retriever
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, Retrieving
from kraq_dspy.programs.shared.options import option
from kraq_dspy.programs.shared.spec import RetrieverSpec, Space
from kraq_dspy.records import Hit


@dataclass(frozen=True)
class MMROptions:
    over: str = option("dense", "The retriever that finds the candidates.")
    balance: float = option(0.7, "From 0 (unlike each other) to 1 (like the question).", least=0, most=1)
    pool: int = option(50, "Candidates.", least=1)


class MMRRetriever(Retrieving):
    """Takes, one by one, the candidate with the highest `balance * cos(d, q) - (1 - balance) * max cos(d, taken)`.

    The candidates are the `pool` (or `k`, if that is more) best of `retrieve`; `why` is "mmr". `balance` is the paper's
    lambda: 1 ranks by the question alone. `score` is that value, 0 standing in for the maximum at the first hit; it
    falls from hit to hit.
    """

    def __init__(
        self, retrieve: Retriever, vectors: VectorStore, embedder: Embedder, *, balance: float = 0.7, pool: int = 50
    ) -> None:
        require_between(0, 1, "a share from 0 (diversity) to 1 (relevance)", balance=balance)
        require_counts("candidates", pool=pool)
        self.retrieve = as_retriever(retrieve)
        self.vectors = vectors
        self.embedder = embedder
        self.balance = balance
        self.pool = pool

    def find(self, request: RetrievalRequest) -> list[Hit]:
        vector = request.embedded_by(self.embedder)
        candidates = replace(request, k=max(request.k, self.pool), vector=vector).send_to(self.retrieve)
        if not candidates:
            return []
        rows = self.vectors.vectors([hit.chunk.id for hit in candidates]).astype(np.float64)
        relevance = rows @ vector
        likeness = np.zeros(len(candidates))  # to the most similar of those taken
        left = np.ones(len(candidates), dtype=bool)
        hits: list[Hit] = []
        while len(hits) < min(request.k, len(candidates)):
            value = np.where(left, self.balance * relevance - (1 - self.balance) * likeness, -np.inf)
            chosen = int(np.argmax(value))  # the first, so ties keep the retriever's order
            left[chosen] = False
            hits.append(Hit(candidates[chosen].chunk, float(value[chosen]), request.question, "mmr"))
            nearness = rows @ rows[chosen]
            likeness = nearness if len(hits) == 1 else np.maximum(likeness, nearness)
        return hits


def make_mmr(space: Space, options: MMROptions) -> MMRRetriever:
    found_by = space.retriever(options.over)
    return MMRRetriever(found_by, space.index.chunk_vectors, space.embedder, balance=options.balance, pool=options.pool)


MMR = RetrieverSpec(
    "mmr",
    "Passages that are unlike each other.",
    make_mmr,
    "MMRRetriever",
    MMROptions,
    source="Carbonell and Goldstein, 1998",
)
