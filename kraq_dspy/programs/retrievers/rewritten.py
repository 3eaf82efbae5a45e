"""Searches with the question and a model's rewritings of it, and fuses the rankings."""

import logging
from collections.abc import Collection
from dataclasses import replace
from typing import ClassVar

import dspy

from kraq_dspy.both_ways import blocking, call
from kraq_dspy.ports import Filters, Retriever, Vectors
from kraq_dspy.programs.failed_calls import CALL_ERRORS, log_failure
from kraq_dspy.programs.retrievers.adapted import as_retriever
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, best_first
from kraq_dspy.programs.state import SavableModule
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.validation import require_counts, require_numbers

logger = logging.getLogger(__name__)


class RewrittenRetriever(SavableModule):
    """Reciprocal rank fusion over the question and what `rewrite` makes of it; `why` is "rewritten".

    `rewrite` is one of `rewriting.py`: Clarify (QRFusion), Vary (RAG-Fusion) or Diversify (DMQR-RAG, which
    reranks with a cross-encoder where this fuses). A retriever and a DSPy module in one: inside a program, its steps
    are optimized and saved with it. Each search gives its `pool` (or `k`, if that is more) best; a chunk scores the sum
    of `1 / (constant + rank)`. Where the model fails, the question is searched with alone.
    """

    keeps_contract: ClassVar[bool] = True

    def __init__(self, retrieve: Retriever, rewrite: dspy.Module, *, pool: int = 30, constant: float = 60.0) -> None:
        super().__init__()
        require_counts("hits of each search", pool=pool)
        require_numbers(constant=constant)
        if constant < 0:
            raise ValueError(f"constant is {constant}; expected 0 or more.")
        self.retrieve = as_retriever(retrieve)
        self.rewrite = rewrite
        self.pool = pool
        self.constant = constant

    async def aforward(
        self,
        question: str,
        k: int,
        *,
        exclude: Collection[str] = frozenset(),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> list[Hit]:
        request = RetrievalRequest(question, k, exclude, filters, vector)
        larger = replace(request, k=max(k, self.pool))
        chunks: dict[str, Chunk] = {}
        scores: dict[str, float] = {}
        for place, search in enumerate([question, *await self._searches(question)]):
            each = larger if place == 0 else replace(larger, question=search, vector=None)
            hits = await call(each.send_to, self.retrieve)
            for rank, hit in enumerate(hits, start=1):
                chunks[hit.chunk.id] = hit.chunk
                scores[hit.chunk.id] = scores.get(hit.chunk.id, 0.0) + 1 / (self.constant + rank)
        return [Hit(chunks[chunk_id], score, question, "rewritten") for chunk_id, score in best_first(scores, k)]

    forward = blocking(aforward)

    async def _searches(self, question: str) -> list[str]:
        """What is searched with besides the question; none where the model fails.

        Raises the errors that end a run: a spent budget, a server that is down.
        """
        try:
            searches: list[str] = (await call(self.rewrite, question=question)).searches
        except CALL_ERRORS as error:
            log_failure(logger, "The question is not rewritten", error)
            return []
        return searches

    searches = blocking(_searches)
