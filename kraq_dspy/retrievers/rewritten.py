"""Searches with the question and with a model's rewriting of it, and fuses the rankings: QRFusion (QA-RAG paper)."""

import logging
import math
from dataclasses import dataclass, replace

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.options import require_between, require_counts
from kraq_dspy._internal.step import CALL_ERRORS, Step, log_failure
from kraq_dspy.ports import Retriever
from kraq_dspy.records import Hit
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.hits import RetrievalRequest, RetrievingModule, fused
from kraq_dspy.signatures import RewriteQuestion
from kraq_dspy.spec import RetrieverSpec, option

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RewrittenOptions:
    over: str = option("dense", "The retriever that each search is asked of.")
    pool: int = option(30, "Hits of each search.", least=1)
    constant: float = option(60.0, "Added to each rank: the larger, the less the first ones count.", least=0)


class RewrittenRetriever(RetrievingModule):
    """Reciprocal rank fusion over the question and what `rewrite` makes of it; `why` is "rewritten".

    Each search gives its `pool` (or `k`, if that is more) best; a chunk scores the sum of `1 / (constant + rank)`.
    Where the model fails, or has nothing to change, the question is searched with alone. A spent budget or a server
    that is down raises its error.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> with space:  # whose model is asked
    ...     [hit.why for hit in RewrittenRetriever(space.retriever("dense"))("Where did Ada live?", 1)]
    ['rewritten']
    """

    def __init__(self, retrieve: Retriever, *, pool: int = 30, constant: float = 60.0) -> None:
        super().__init__()
        require_counts("hits of each search", pool=pool)
        require_between(0, math.inf, "0 or more", constant=constant)
        self.retrieve = as_retriever(retrieve)
        self.rewrite = Step(RewriteQuestion)
        self.pool = pool
        self.constant = constant

    async def find(self, request: RetrievalRequest) -> list[Hit]:
        larger = replace(request, k=max(request.k, self.pool))
        rankings = [await call(larger.send_to, self.retrieve)]
        rewritten = ""
        try:
            rewritten = str((await call(self.rewrite, question=request.question)).rewritten or "").strip()
        except CALL_ERRORS as error:
            log_failure(logger, "The question is not rewritten", error)
        if rewritten and _plain(rewritten) != _plain(request.question):
            other = replace(larger, question=rewritten, vector=None)
            rankings.append(await call(other.send_to, self.retrieve))
        return fused(rankings, self.constant, request.question, request.k, "rewritten")


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


QR_FUSION = RetrieverSpec(
    "qr-fusion",
    "The question and a model's rewriting of it, fused.",
    lambda space, options: RewrittenRetriever(
        space.retriever(options.over), pool=options.pool, constant=options.constant
    ),
    "RewrittenRetriever",
    RewrittenOptions,
    source="QA-RAG paper",
)
