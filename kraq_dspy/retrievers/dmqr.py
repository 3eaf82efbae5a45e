"""Searches with rewritings that keep more or less of the question: DMQR-RAG (Li et al., 2024, arXiv 2411.13154)."""

from collections.abc import Sequence
from dataclasses import dataclass

from kraq_dspy._internal.both_ways import at_once, call
from kraq_dspy._internal.step import Step
from kraq_dspy.ports import Retriever
from kraq_dspy.retrievers.rewritten import FusedSearches, RewrittenOptions, made_over
from kraq_dspy.signatures import ChooseRewritings, CondenseQuestion, GuessAnswer, ListKeywords, RewriteQuestion
from kraq_dspy.spec import RetrieverSpec, option


@dataclass(frozen=True)
class DiverseOptions(RewrittenOptions):
    adaptive: bool = option(True, "Let the model choose among the rewritings.")


class DMQRRetriever(FusedSearches):
    """Retrieves with up to four rewritings of the question, fused (DMQR-RAG, Li et al., 2024). `why` is "diverse".

    Args:
        retrieve: the retriever of each search.
        adaptive: let the model choose some of the four rewritings, in one further call.
        pool: the number of hits of each search, at least `k`.
        constant: the constant of reciprocal rank fusion, 0 or more.

    Raises:
        ValueError: for an option out of range.

    The four rewritings are a general one, the keywords, the core of the question, and a pseudo-answer. Each takes one
    call; the calls run at the same time. The paper also reranks the passages with a cross-encoder. To do the same,
    use the retriever `cross-encoder` over `dmqr`.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> with space:  # whose model is asked
    ...     [hit.why for hit in DMQRRetriever(space.retriever("dense"))("Where did Ada live?", 1)]
    ['diverse']
    """

    named = "diverse"

    def __init__(
        self,
        retrieve: Retriever,
        *,
        adaptive: bool = DiverseOptions.adaptive,
        pool: int = DiverseOptions.pool,
        constant: float = DiverseOptions.constant,
    ) -> None:
        super().__init__(retrieve, pool=pool, constant=constant)
        self.adaptive = adaptive
        self.rewrite = Step(RewriteQuestion)
        self.keywords = Step(ListKeywords)
        self.guess = Step(GuessAnswer)
        self.condense = Step(CondenseQuestion)
        if adaptive:
            self.choose = Step(ChooseRewritings)

    async def searches(self, question: str) -> Sequence[str]:
        writers = {
            "rewrite": self._rewritten,
            "keywords": self._keywords,
            "answer": self._guessed,
            "core": self._core,
        }
        names = list(writers)
        if self.adaptive:
            chosen = (await call(self.choose, question=question)).rewritings or ()
            names = [name for name in dict.fromkeys(chosen) if name in writers]
        return await at_once(lambda name: writers[name](question), names)

    async def _rewritten(self, question: str) -> str:
        return str((await call(self.rewrite, question=question)).rewritten or "")

    async def _keywords(self, question: str) -> str:
        return " ".join(map(str, (await call(self.keywords, question=question)).keywords or ()))

    async def _guessed(self, question: str) -> str:
        return str((await call(self.guess, question=question)).guess or "")

    async def _core(self, question: str) -> str:
        return str((await call(self.condense, question=question)).core or "")


DMQR = RetrieverSpec(
    "dmqr",
    "Rewritings that keep more or less of the question, chosen by a model, fused.",
    made_over(DMQRRetriever),
    "DMQRRetriever",
    DiverseOptions,
    source="DMQR-RAG, Li et al., 2024",
)
