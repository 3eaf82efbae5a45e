"""Searches with the question and with what a model makes of it, and fuses the rankings; the plainest is QRFusion."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, TypeVar

from kraq_dspy._internal.both_ways import at_once, call
from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.step import CALL_ERRORS, Step, log_failure
from kraq_dspy.ports import Retriever
from kraq_dspy.records import Hit
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.hits import RetrievalRequest, RetrievingModule, fused
from kraq_dspy.signatures import RewriteQuestion
from kraq_dspy.spec import RetrieverSpec, Space, option

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RewrittenOptions:
    over: str = option("dense", "Retriever of each search.")
    pool: int = option(30, "Hits of each search.", least=1)
    constant: float = option(60.0, "Added to each rank: the larger, the less the first ones count.", least=0)


class FusedSearches(RetrievingModule):
    """Reciprocal rank fusion over the question and the `searches` that a model makes of it; `why` is `named`.

    Each search gives its `pool` (or `k`, if that is more) best; a chunk scores the sum of `1 / (constant + rank)`.
    Where the model fails, or has nothing to add, the question is searched with alone. A spent budget or a server that
    is down raises its error.
    """

    named: ClassVar[str]

    def __init__(
        self, retrieve: Retriever, *, pool: int = RewrittenOptions.pool, constant: float = RewrittenOptions.constant
    ) -> None:
        super().__init__()
        require_options(RewrittenOptions, pool=pool, constant=constant)
        self.retrieve = as_retriever(retrieve)
        self.pool = pool
        self.constant = constant

    async def searches(self, question: str) -> Sequence[str]:
        """Return what is searched with beside the question."""
        raise NotImplementedError(f"{type(self).__name__} has no `searches`.")

    async def find(self, request: RetrievalRequest) -> list[Hit]:
        larger = replace(request, k=max(request.k, self.pool))
        others: Sequence[str] = ()
        try:
            others = distinct_searches(request.question, await self.searches(request.question))
        except CALL_ERRORS as error:
            log_failure(logger, "The question is searched with alone", error)

        requests = [larger, *(replace(larger, question=search, vector=None) for search in others)]
        rankings = await at_once(lambda each: call(each.send_to, self.retrieve), requests)
        return fused(rankings, self.constant, request.question, request.k, self.named)


class RewrittenRetriever(FusedSearches):
    """Retrieves with the question and with a model's rewriting, and fuses both rankings: QRFusion (QA-RAG paper,
    2.2).
    `why` is "rewritten".

    Args:
        retrieve: the retriever of both searches.
        pool: the number of hits of each search, at least `k`.
        constant: the constant of reciprocal rank fusion, 0 or more.

    Raises:
        ValueError: for an option out of range.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> with space:  # whose model is asked
    ...     [hit.why for hit in RewrittenRetriever(space.retriever("dense"))("Where did Ada live?", 1)]
    ['rewritten']
    """

    named = "rewritten"

    def __init__(
        self, retrieve: Retriever, *, pool: int = RewrittenOptions.pool, constant: float = RewrittenOptions.constant
    ) -> None:
        super().__init__(retrieve, pool=pool, constant=constant)
        self.rewrite = Step(RewriteQuestion)

    async def searches(self, question: str) -> Sequence[str]:
        return [str((await call(self.rewrite, question=question)).rewritten or "")]


Fused = TypeVar("Fused", bound=FusedSearches)


def made_over(kind: Callable[..., Fused]) -> Callable[[Space, RewrittenOptions], Fused]:
    """What makes such a retriever of an opened index: over the retriever that the options name, with all the others."""

    def make(space: Space, options: RewrittenOptions) -> Fused:
        chosen = asdict(options)
        return kind(space.retriever(chosen.pop("over")), **chosen)

    return make


def distinct_searches(question: str, searches: Iterable[str]) -> list[str]:
    """Each search once, none that is empty or the question itself; case and white space do not count.

    >>> distinct_searches("Who was Ada?", ["who was  Ada?", "Ada Lovelace", "", "ada lovelace"])
    ['Ada Lovelace']
    """
    by_words: dict[str, str] = {}
    for search in searches:
        by_words.setdefault(_plain(search), search.strip())
    by_words.pop(_plain(question), None)
    by_words.pop("", None)
    return list(by_words.values())


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


QR_FUSION = RetrieverSpec(
    "qr-fusion",
    "The question and a model's rewriting of it, fused.",
    made_over(RewrittenRetriever),
    "RewrittenRetriever",
    RewrittenOptions,
    source="QA-RAG paper",
)
