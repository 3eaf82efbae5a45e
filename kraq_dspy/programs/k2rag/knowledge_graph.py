"""What a knowledge graph holds around a question, for K2RAG's step A and for the paper's naive graph baseline."""

import asyncio
from time import perf_counter

import dspy

from kraq_dspy.programs.fit import FittingPredict
from kraq_dspy.programs.graph_search.local_context import LocalContext, local_context
from kraq_dspy.programs.graph_search.sources import GraphSource, NearestTexts
from kraq_dspy.programs.retrievers.reports import EntityReportRetriever
from kraq_dspy.signatures import AnswerQuestion, TellFromGraph


class KnowledgeGraph:
    """The entities nearest to the question, their links, the reports of their communities and their passages, at most
    `k`, in a budget of tokens: what GraphRAG's local search shows. The paper names GraphRAG and not which search."""

    def __init__(
        self,
        nearest: NearestTexts,
        graph: GraphSource,
        *,
        k: int = 10,
        n_entities: int = 10,
        level: int = 2,
        tokens: int = 8000,
    ) -> None:
        for name, value in (("k", k), ("n_entities", n_entities), ("tokens", tokens)):
            if value < 1:
                raise ValueError(f"{name} is {value}; expected 1 or more.")
        self.nearest = nearest
        self.graph = graph
        self.reports = EntityReportRetriever(nearest, graph, n_entities=n_entities, level=level)
        self.k = k
        self.n_entities = n_entities
        self.tokens = tokens

    def __call__(self, question: str) -> LocalContext:
        scored = self.nearest(question, self.n_entities)
        entities = self.graph.entities([entity_id for entity_id, _ in scored])
        found = [(entity, cosine) for entity, (_, cosine) in zip(entities, scored, strict=True)]
        reports = self.reports(question, self.n_entities)
        return local_context(self.graph, question, found, reports, tokens=self.tokens, k=self.k)


class NaiveGraphRAG(dspy.Module):
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

    def forward(self, question: str) -> dspy.Prediction:
        started = perf_counter()
        found = self.knowledge(question)
        retrieved = perf_counter()
        account = self.tell(question=question, **found.shown).account.strip()
        told = perf_counter()
        answer = self.answer(question=question, passages=[account] if account else []).answer
        return _prediction(answer, found, account, started, retrieved, told)

    async def aforward(self, question: str) -> dspy.Prediction:
        started = perf_counter()
        found = await asyncio.to_thread(self.knowledge, question)
        retrieved = perf_counter()
        account = (await self.tell.acall(question=question, **found.shown)).account.strip()
        told = perf_counter()
        answer = (await self.answer.acall(question=question, passages=[account] if account else [])).answer
        return _prediction(answer, found, account, started, retrieved, told)


def _prediction(
    answer: str, found: LocalContext, account: str, started: float, retrieved: float, told: float
) -> dspy.Prediction:
    ended = perf_counter()
    timings = {
        "retrieve": retrieved - started,
        "tell": told - retrieved,
        "answer": ended - told,
        "wall": ended - started,
    }
    return dspy.Prediction(answer=answer, hits=list(found.hits), account=account, timings=timings)
