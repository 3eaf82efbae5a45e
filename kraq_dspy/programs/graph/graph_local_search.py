"""Answers from the graph around a question's entities: GraphRAG's local search (Edge et al., 2024)."""

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.clock import Clock
from kraq_dspy._internal.fit import FittingPredict
from kraq_dspy.programs.graph.local_context import KnowledgeGraph
from kraq_dspy.programs.graph.sources import GraphSource, NearestTexts
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.signatures import AnswerFromGraph


class GraphLocalSearch(SavableModule):
    """One answer from what a `KnowledgeGraph` with these settings holds around the question.

    `context` gathers that and asks no model.

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
        self.context = KnowledgeGraph(nearest, graph, k=k, n_entities=n_entities, level=level, tokens=tokens)
        self.k = k
        self.answer = FittingPredict(AnswerFromGraph, "passages", "reports", "relationships", "entities")

    async def aforward(self, question: str) -> dspy.Prediction:
        clock = Clock()
        await clock.begin("retrieve", "searching the graph")
        context = await call(self.context, question)
        await clock.begin("answer", "answering")
        reply = await call(self.answer, question=question, **context.shown)
        return dspy.Prediction(
            answer=reply.answer,
            hits=list(context.hits),
            reports=list(context.reports),
            entities=list(context.entities),
            relationships=list(context.relationships),
            context_tokens=context.n_tokens,
            timings=clock.timings(),
        )

    forward = blocking(aforward)
