"""Holds K2RAG's baseline over a graph; its others are Traditional RAG over dense, bm25 and hybrid retrieval."""

from dataclasses import asdict, dataclass

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.clock import Clock
from kraq_dspy._internal.step import FittingPredict, SignatureLike, prediction, signature_for
from kraq_dspy.programs.graph.graph_local_search import GraphContextOptions, KnowledgeGraph
from kraq_dspy.programs.shared.spec import ProgramSpec, Space, option
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.signatures import AnswerQuestion, TellFromGraph


class NaiveGraphRAG(SavableModule):
    """K2RAG's baseline over a graph: the graph's account of the question, and the answer from nothing else.

    The prediction has `answer`, `hits` (the passages of the graph's entities), `account` and `timings`: seconds for
    "retrieve", "tell", "answer" and "wall".
    """

    def __init__(self, knowledge: KnowledgeGraph, signature: SignatureLike = None) -> None:
        super().__init__()
        self.knowledge = knowledge
        self.k = knowledge.k
        self.tell = FittingPredict(TellFromGraph, shorten="passages")
        self.answer = FittingPredict(signature_for(AnswerQuestion, signature), shorten="passages")

    async def aforward(self, question: str) -> dspy.Prediction:
        clock = Clock()
        await clock.begin("retrieve", "searching the graph")
        context = await call(self.knowledge, question)
        await clock.begin("tell")
        told = await call(self.tell, question=question, **context.shown)
        account = told.account.strip()
        await clock.begin("answer", "answering")
        reply = await call(self.answer, question=question, passages=[account] if account else [])
        return prediction(reply, hits=list(context.hits), account=account, timings=clock.timings())

    forward = blocking(aforward)


@dataclass(frozen=True)
class NaiveGraphOptions(GraphContextOptions):
    k: int = option(10, "Passages at most.", least=1, counts="passages")


def make_naive_graph(space: Space, part: None, options: NaiveGraphOptions) -> NaiveGraphRAG:
    return NaiveGraphRAG(KnowledgeGraph(space.entity_vectors, space.graph, **asdict(options)))


NAIVE_GRAPH = ProgramSpec(
    "naive-graph",
    "Once, from the whole corpus's graph.",
    make_naive_graph,
    "NaiveGraphRAG",
    NaiveGraphOptions,
    takes="nothing",
    prepared=("graph",),
    keys=("account",),
    source="K2RAG paper, baseline",
)
