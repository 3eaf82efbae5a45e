"""Has a model write other searches than the question, searches with all of them, and fuses the rankings."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.options import require_between, require_counts
from kraq_dspy._internal.step import CALL_ERRORS, Step, log_failure
from kraq_dspy.ports import Retriever
from kraq_dspy.programs.retrievers.adapted import as_retriever
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, RetrievingModule, fused
from kraq_dspy.programs.shared.spec import RetrieverSpec, Space, option
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import check_steps, extra_outputs, prediction
from kraq_dspy.records import Hit
from kraq_dspy.signatures import RewriteQuestion, VaryQuestion

logger = logging.getLogger(__name__)


class Clarify(SavableModule):
    """QRFusion: the question, rewritten once. Predicts `searches`: texts other than the question."""

    asks: Mapping[str, str] = {"rewrite": "question -> rewritten"}

    def __init__(self) -> None:
        super().__init__()
        self.rewrite = Step(RewriteQuestion)

    async def aforward(self, question: str) -> dspy.Prediction:
        check_steps(self)
        reply = await call(self.rewrite, question=question)
        return prediction(extra_outputs(reply, "rewritten"), searches=_others(question, [reply.rewritten]))

    forward = blocking(aforward)


class Vary(SavableModule):
    """RAG-Fusion: up to `count` searches. Predicts `searches`: texts other than the question."""

    asks: Mapping[str, str] = {"vary": "question, count -> searches"}

    def __init__(self, count: int = 4) -> None:
        super().__init__()
        require_counts("searches", count=count)
        self.count = count
        self.vary = Step(VaryQuestion)

    async def aforward(self, question: str) -> dspy.Prediction:
        check_steps(self)
        reply = await call(self.vary, question=question, count=self.count)
        return prediction(dict(reply.items()), searches=_others(question, reply.searches or ())[: self.count])

    forward = blocking(aforward)


@dataclass(frozen=True)
class RewrittenOptions:
    over: str = option("dense", "The retriever that each search is asked of.")
    pool: int = option(30, "Hits of each search.", least=1)
    constant: float = option(60.0, "Added to each rank: the larger, the less the first ones count.", least=0)


@dataclass(frozen=True)
class VariedOptions(RewrittenOptions):
    count: int = option(4, "Searches besides the question.", least=1)


class RewrittenRetriever(RetrievingModule):
    """Reciprocal rank fusion over the question and what `rewrite` makes of it; `why` is "rewritten".

    `rewrite` is Clarify (QRFusion), Vary (RAG-Fusion), or a module of your own that predicts `searches`. Each search
    gives its `pool` (or `k`, if that is more) best; a chunk scores the sum of `1 / (constant + rank)`. Where the model
    fails, the question is searched with alone.
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


def _others(question: str, searches: Iterable[str]) -> list[str]:
    """Each once, none that is empty or the question itself."""
    by_words: dict[str, str] = {}
    for search in searches:
        by_words.setdefault(_plain(search), search.strip())
    return [search for words, search in by_words.items() if words and words != _plain(question)]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
