"""Answers from the graph around a question's entities: GraphRAG's local search (Edge et al., 2024)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.clock import Clock
from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.programs.graph.local_context import KnowledgeGraph
from kraq_dspy.programs.graph.sources import GraphSource, NearestTexts
from kraq_dspy.programs.shared.options import option
from kraq_dspy.programs.shared.spec import ProgramSpec, Space
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import SignatureLike, check_steps, prediction, signature_for
from kraq_dspy.signatures import AnswerFromGraph


@dataclass(frozen=True)
class GraphContextOptions:
    k: int = option(15, "Passages at most.", least=1, counts="passages")
    n_entities: int = option(10, "Entities nearest to the question.", least=1)
    level: int = option(2, "Level of the reports, or broader; 0 is the broadest.", least=0, counts="levels")
    tokens: int = option(8000, "Of the prompt: 15 % reports, 35 % graph, the rest passages.", least=1)


class GraphLocalSearch(SavableModule):
    """One answer from what a `KnowledgeGraph` with these settings holds around the question.

    `context` gathers that and asks no model.

    The prediction has `answer`, `hits` (the passages shown), `reports` (hits, too), `entities`, `relationships`,
    `context_tokens` and `timings`: seconds for "retrieve", "answer" and "wall".
    """

    asks: Mapping[str, str] = {"answer": "question, reports, entities, relationships, passages -> answer"}

    def __init__(
        self,
        nearest: NearestTexts,
        graph: GraphSource,
        *,
        k: int = GraphContextOptions.k,
        n_entities: int = GraphContextOptions.n_entities,
        level: int = GraphContextOptions.level,
        tokens: int = GraphContextOptions.tokens,
        signature: SignatureLike = None,
    ) -> None:
        super().__init__()
        self.context = KnowledgeGraph(nearest, graph, k=k, n_entities=n_entities, level=level, tokens=tokens)
        self.k = k
        self.answer = FittingPredict(
            signature_for(AnswerFromGraph, signature), "passages", "reports", "relationships", "entities"
        )

    async def aforward(self, question: str) -> dspy.Prediction:
        check_steps(self)
        clock = Clock()
        await clock.begin("retrieve", "searching the graph")
        context = await call(self.context, question)
        await clock.begin("answer", "answering")
        reply = await call(self.answer, question=question, **context.shown)
        return prediction(
            dict(reply.items()),
            hits=list(context.hits),
            reports=list(context.reports),
            entities=list(context.entities),
            relationships=list(context.relationships),
            context_tokens=context.n_tokens,
            timings=clock.timings(),
        )

    forward = blocking(aforward)


def make_graph_local(space: Space, part: None, options: GraphContextOptions) -> GraphLocalSearch:
    return GraphLocalSearch(space.entity_vectors, space.graph, **asdict(options))


GRAPH_LOCAL = ProgramSpec(
    "graph-local",
    "Entities near the question, their links, reports and passages in a budget.",
    make_graph_local,
    "GraphLocalSearch",
    GraphContextOptions,
    takes="nothing",
    prepared=("graph",),
    keys=("reports", "entities", "relationships", "context_tokens"),
    source="GraphRAG, local (Edge et al., 2024)",
)
