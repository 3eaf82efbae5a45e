"""GraphRAG's local search: what the graph holds around the entities that a question is about (Edge et al., 2024)."""

import asyncio
from time import perf_counter

import dspy

from kraq_dspy.programs.fit import FittingPredict
from kraq_dspy.programs.graph_search.local_context import LocalContext, local_context
from kraq_dspy.programs.graph_search.sources import GraphSource, NearestTexts
from kraq_dspy.programs.retrievers.reports import EntityReportRetriever
from kraq_dspy.signatures import AnswerFromGraph


class GraphLocalSearch(dspy.Module):
    """The `n_entities` nearest to the question, their relationships, the reports of their communities at `level` or
    broader, and their passages, at most `k`, all in `tokens` tokens: 15 % reports, 35 % graph, the rest passages.

    The prediction has `answer`, `hits` (the passages shown), `reports` (hits, too), `entities`, `relationships`,
    `context_tokens` and `timings`: seconds for "retrieve", "answer" and "wall".
    """

    def __init__(
        self,
        nearest: NearestTexts,
        graph: GraphSource,
        *,
        k: int = 15,
        n_entities: int = 10,
        level: int = 2,
        tokens: int = 8000,
    ) -> None:
        super().__init__()
        for name, value in (("k", k), ("n_entities", n_entities), ("tokens", tokens)):
            if value < 1:
                raise ValueError(f"{name} is {value}; expected 1 or more.")
        self.nearest = nearest
        self.graph = graph
        self.reports = EntityReportRetriever(nearest, graph, n_entities=n_entities, level=level)
        self.k = k
        self.n_entities = n_entities
        self.tokens = tokens
        self.answer = FittingPredict(AnswerFromGraph, "passages", "reports", "relationships", "entities")

    def forward(self, question: str) -> dspy.Prediction:
        started = perf_counter()
        found = self.context(question)
        retrieved = perf_counter()
        answer = self.answer(question=question, **found.shown).answer
        return _prediction(answer, found, started, retrieved)

    async def aforward(self, question: str) -> dspy.Prediction:
        started = perf_counter()
        found = await asyncio.to_thread(self.context, question)
        retrieved = perf_counter()
        answer = (await self.answer.acall(question=question, **found.shown)).answer
        return _prediction(answer, found, started, retrieved)

    def context(self, question: str) -> LocalContext:
        """What the model would be shown; asks no model."""
        scored = self.nearest(question, self.n_entities)
        entities = self.graph.entities([entity_id for entity_id, _ in scored])
        found = [(entity, cosine) for entity, (_, cosine) in zip(entities, scored, strict=True)]
        reports = self.reports(question, self.n_entities)
        return local_context(self.graph, question, found, reports, tokens=self.tokens, k=self.k)


def _prediction(answer: str, found: LocalContext, started: float, retrieved: float) -> dspy.Prediction:
    ended = perf_counter()
    return dspy.Prediction(
        answer=answer,
        hits=list(found.hits),
        reports=list(found.reports),
        entities=list(found.entities),
        relationships=list(found.relationships),
        context_tokens=found.n_tokens,
        timings={"retrieve": retrieved - started, "answer": ended - retrieved, "wall": ended - started},
    )
