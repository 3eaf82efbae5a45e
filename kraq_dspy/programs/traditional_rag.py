"""Traditional RAG: the baseline that the other programs must beat (KRAQ paper, section 3)."""

import asyncio
from time import perf_counter

import dspy

from kraq_dspy.ports import Retriever
from kraq_dspy.programs.fit import FittingPredict
from kraq_dspy.signatures import AnswerQuestion


class TraditionalRAG(dspy.Module):
    """Retrieve once, answer once.

    The prediction has `answer`, `hits` and `timings`: seconds for "retrieve", "answer" and "wall" (all together). No
    hits are no error: the model is then asked without passages, and is told to say so when it does not know.
    """

    def __init__(self, retrieve: Retriever, k: int = 15) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k is {k}; expected 1 or more passages.")
        self.retrieve = retrieve
        self.k = k
        self.answer = FittingPredict(AnswerQuestion, shorten="passages")

    def forward(self, question: str) -> dspy.Prediction:
        started = perf_counter()
        hits = self.retrieve(question, self.k)
        retrieved = perf_counter()
        answer = self.answer(question=question, passages=[hit.chunk.passage for hit in hits]).answer
        ended = perf_counter()
        timings = {"retrieve": retrieved - started, "answer": ended - retrieved, "wall": ended - started}
        return dspy.Prediction(answer=answer, hits=hits, timings=timings)

    async def aforward(self, question: str) -> dspy.Prediction:
        started = perf_counter()
        hits = await asyncio.to_thread(self.retrieve, question, self.k)
        retrieved = perf_counter()
        answer = (await self.answer.acall(question=question, passages=[hit.chunk.passage for hit in hits])).answer
        ended = perf_counter()
        timings = {"retrieve": retrieved - started, "answer": ended - retrieved, "wall": ended - started}
        return dspy.Prediction(answer=answer, hits=hits, timings=timings)
