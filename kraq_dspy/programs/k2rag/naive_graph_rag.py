"""Answers from the graph's account of the question alone: K2RAG's baseline over a graph."""

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.clock import Clock
from kraq_dspy._internal.fit import FittingPredict
from kraq_dspy.programs.graph.local_context import KnowledgeGraph
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.signatures import AnswerQuestion, TellFromGraph


class NaiveGraphRAG(SavableModule):
    """K2RAG's baseline over a graph: the graph's account of the question, and the answer from nothing else.

    The prediction has `answer`, `hits` (the passages of the graph's entities), `account` and `timings`: seconds for
    "retrieve", "tell", "answer" and "wall".
    """

    def __init__(self, knowledge: KnowledgeGraph) -> None:
        super().__init__()
        self.knowledge = knowledge
        self.k = knowledge.k
        self.tell = FittingPredict(TellFromGraph, shorten="passages")
        self.answer = FittingPredict(AnswerQuestion, shorten="passages")

    async def aforward(self, question: str) -> dspy.Prediction:
        clock = Clock()
        await clock.begin("retrieve", "searching the graph")
        context = await call(self.knowledge, question)
        await clock.begin("tell")
        account = (await call(self.tell, question=question, **context.shown)).account.strip()
        await clock.begin("answer", "answering")
        reply = await call(self.answer, question=question, passages=[account] if account else [])
        return dspy.Prediction(answer=reply.answer, hits=list(context.hits), account=account, timings=clock.timings())

    forward = blocking(aforward)
