"""Searches with the question and a model's rewritings of it, and fuses the rankings."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.options import require_between, require_counts
from kraq_dspy._internal.step import CALL_ERRORS, log_failure
from kraq_dspy.ports import Retriever
from kraq_dspy.programs.retrievers.adapted import as_retriever
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, RetrievingModule, fused
from kraq_dspy.programs.retrievers.rewriting import Clarify, Diversify, Vary
from kraq_dspy.programs.shared.options import option
from kraq_dspy.programs.shared.spec import RetrieverSpec, Space
from kraq_dspy.records import Hit

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RewrittenOptions:
    over: str = option("dense", "The retriever that each search is asked of.")
    pool: int = option(30, "Hits of each search.", least=1)
    constant: float = option(60.0, "Added to each rank: the larger, the less the first ones count.", least=0)


@dataclass(frozen=True)
class VariedOptions(RewrittenOptions):
    count: int = option(4, "Searches besides the question.", least=1)


@dataclass(frozen=True)
class DiverseOptions(RewrittenOptions):
    adaptive: bool = option(True, "Let the model choose among the rewritings.")


class RewrittenRetriever(RetrievingModule):
    """Reciprocal rank fusion over the question and what `rewrite` makes of it; `why` is "rewritten".

    `rewrite` is one of `rewriting.py`: Clarify (QRFusion), Vary (RAG-Fusion) or Diversify (DMQR-RAG, which
    reranks with a cross-encoder where this fuses). Each search gives its `pool` (or `k`, if that is more) best; a chunk
    scores the sum of `1 / (constant + rank)`. Where the model fails, the question is searched with alone.
    """

    def __init__(self, retrieve: Retriever, rewrite: dspy.Module, *, pool: int = 30, constant: float = 60.0) -> None:
        super().__init__()
        require_counts("hits of each search", pool=pool)
        require_between(0, math.inf, "0 or more", constant=constant)
        self.retrieve = as_retriever(retrieve)
        self.rewrite = rewrite
        self.pool = pool
        self.constant = constant

    async def find(self, request: RetrievalRequest) -> list[Hit]:
        larger = replace(request, k=max(request.k, self.pool))
        searches = await self._searches(request.question)
        requests = [larger, *(replace(larger, question=search, vector=None) for search in searches)]
        rankings = [await call(each.send_to, self.retrieve) for each in requests]
        return fused(rankings, self.constant, request.question, request.k, "rewritten")

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


def make_rewritten(step: Callable[[Any], dspy.Module]) -> Callable[[Space, Any], RewrittenRetriever]:
    """Makes what makes a retriever over what a step writes; `step` makes that step of the options."""
    return lambda space, options: RewrittenRetriever(
        space.retriever(options.over), step(options), pool=options.pool, constant=options.constant
    )


QR_FUSION = RetrieverSpec(
    "qr-fusion",
    "The question and a model's rewriting of it, fused.",
    make_rewritten(lambda options: Clarify()),
    "RewrittenRetriever",
    RewrittenOptions,
    source="QA-RAG paper",
)
RAG_FUSION = RetrieverSpec(
    "rag-fusion",
    "The question and several searches that a model writes, fused.",
    make_rewritten(lambda options: Vary(options.count)),
    "RewrittenRetriever",
    VariedOptions,
    source="Rackauckas, 2024",
)
DMQR = RetrieverSpec(
    "dmqr",
    "Rewritings that keep more or less of the question, chosen by a model, fused.",
    make_rewritten(lambda options: Diversify(options.adaptive)),
    "RewrittenRetriever",
    DiverseOptions,
    source="DMQR-RAG, Li et al., 2024",
)
