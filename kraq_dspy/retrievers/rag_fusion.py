"""Searches with the question and with several variants of it that a model writes: RAG-Fusion (Rackauckas, 2024)."""

from collections.abc import Sequence
from dataclasses import dataclass

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.step import Step
from kraq_dspy.ports import Retriever
from kraq_dspy.retrievers.rewritten import FusedSearches, RewrittenOptions, made_over
from kraq_dspy.signatures import VaryQuestion
from kraq_dspy.spec import RetrieverSpec, option


@dataclass(frozen=True)
class VariedOptions(RewrittenOptions):
    count: int = option(4, "Variants of the question.", least=1)


class RAGFusionRetriever(FusedSearches):
    """Retrieves with the question and with variants that a model writes, and fuses the rankings (RAG-Fusion,
    Rackauckas,
    2024). `why` is "varied".

    Args:
        retrieve: the retriever of each search.
        count: the number of variants, 1 or more. One call writes all of them.
        pool: the number of hits of each search, at least `k`.
        constant: the constant of reciprocal rank fusion, 0 or more.

    Raises:
        ValueError: for an option out of range.

    The model writes the variants at query time and does not see the corpus. The retriever `combined` searches with
    questions that were made from the corpus in advance; the KRAQ paper (section 6) and the thesis (2.5.2) compare
    both ways.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> with space:  # whose model is asked
    ...     [hit.why for hit in RAGFusionRetriever(space.retriever("dense"))("Where did Ada live?", 1)]
    ['varied']
    """

    named = "varied"

    def __init__(
        self,
        retrieve: Retriever,
        *,
        count: int = VariedOptions.count,
        pool: int = VariedOptions.pool,
        constant: float = VariedOptions.constant,
    ) -> None:
        super().__init__(retrieve, pool=pool, constant=constant)
        require_options(VariedOptions, count=count)
        self.count = count
        self.vary = Step(VaryQuestion)

    async def searches(self, question: str) -> Sequence[str]:
        reply = await call(self.vary, question=question, count=self.count)
        return [str(search) for search in reply.searches or ()][: self.count]


RAG_FUSION = RetrieverSpec(
    "rag-fusion",
    "The question and variants that a model writes of it, fused.",
    made_over(RAGFusionRetriever),
    "RAGFusionRetriever",
    VariedOptions,
    source="RAG-Fusion, Rackauckas, 2024",
)
