"""K2RAG's questions to a summarised corpus (Markondapatnaikuni et al., 2025, section 3.1.3 and algorithm 2)."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from time import perf_counter
from typing import ClassVar

import dspy
from dspy.utils.exceptions import DSPyError

from kraq_dspy.errors import ModelError
from kraq_dspy.ports import Retriever
from kraq_dspy.programs.fit import FittingPredict
from kraq_dspy.programs.graph_search.local_context import LocalContext
from kraq_dspy.programs.k2rag.shorten import Shorten, split
from kraq_dspy.programs.speculative.concurrently import gather_all, run_all
from kraq_dspy.programs.speculative.drafts import in_one_line, raise_if_final
from kraq_dspy.records import Hit
from kraq_dspy.signatures import AnswerQuestion, AskSubQuestion, TellFromGraph

logger = logging.getLogger(__name__)

PIECE_TOKENS, PIECE_OVERLAP = 128, 10  # of the graph's account, for a sub-question each (section 3.1.3)


GraphContext = Callable[[str], LocalContext]
"""What a graph holds around a question: a `KnowledgeGraph`."""


@dataclass(frozen=True, slots=True)
class SubAnswer:
    """A sub-question, what was found for it, the answer, and the answer in fewer words."""

    question: str
    answer: str
    shortened: str
    hits: tuple[Hit, ...]


class K2RAG(dspy.Module):
    """A: the graph's account of the question. B: the account in fewer words. C: a sub-question for each piece of the
    account. D: for each, `k` passages by hybrid retrieval, an answer, the answer in fewer words; all of them in fewer
    words. E: the answer from both.

    Graph and passages are those of the summarised corpus (`kraq precompute DIR --k2rag`). Without a graph (`knowledge`
    None: a corpus too small to have one), or when it says nothing, the question itself is the one sub-question. A piece
    whose sub-question, or a sub-question whose answer, cannot be had costs itself alone and is counted.

    The paper's text splits the account's summary, its algorithm the account; this follows the algorithm, since most
    summaries are one piece. Its algorithm answers the user's question from each sub-question's passages, its text the
    sub-question; this follows the text. Sub-questions are worked on at once; there one after the other.

    The prediction has `answer`, `hits` (best of each sub-question in turn, each passage once), `account`,
    `account_summary`, `sub_questions`, `sub_answers` (SubAnswer), `context` (what the answer was made from), `n_failed`
    and `timings`: seconds for "graph" (A, B), "sub_questions" (C), "sub_answers" (D), "answer" (E) and "wall".
    """

    SHARE: ClassVar[float] = 0.5
    """Of its length that an account or an answer keeps when it is shortened."""

    def __init__(self, knowledge: GraphContext | None, retrieve: Retriever, shorten: Shorten, k: int = 10) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k is {k}; expected 1 or more passages.")
        self.knowledge = knowledge
        self.retrieve = retrieve
        self.k = k
        self.tell = FittingPredict(TellFromGraph, shorten="passages")
        self.ask = FittingPredict(AskSubQuestion, shorten="information")
        self.sub_answer = FittingPredict(AnswerQuestion, shorten="passages")
        self.shorten = shorten
        self.answer = FittingPredict(AnswerQuestion, shorten="passages")

    def forward(self, question: str) -> dspy.Prediction:
        marks = [perf_counter()]
        account = ""
        if self.knowledge is not None:
            account = self.tell(question=question, **self.knowledge(question).shown).account.strip()
        summary = self._shorter(account)
        marks.append(perf_counter())
        asked = run_all(self._ask, split(account, PIECE_TOKENS, PIECE_OVERLAP))
        sub_questions = _distinct(asked) or [question]
        marks.append(perf_counter())
        answered = run_all(self._answer, sub_questions)
        found = [answer for answer in answered if answer is not None]
        told = self._shorter("\n".join(answer.shortened for answer in found))
        marks.append(perf_counter())
        context = [text for text in (summary, told) if text]
        answer = self.answer(question=question, passages=context).answer
        marks.append(perf_counter())
        return _prediction(answer, account, summary, asked, sub_questions, answered, context, marks)

    async def aforward(self, question: str) -> dspy.Prediction:
        marks = [perf_counter()]
        account = ""
        if self.knowledge is not None:
            shown = (await asyncio.to_thread(self.knowledge, question)).shown
            account = (await self.tell.acall(question=question, **shown)).account.strip()
        summary = await self._ashorter(account)
        marks.append(perf_counter())
        asked = await gather_all(self._aask, split(account, PIECE_TOKENS, PIECE_OVERLAP))
        sub_questions = _distinct(asked) or [question]
        marks.append(perf_counter())
        answered = await gather_all(self._aanswer, sub_questions)
        found = [answer for answer in answered if answer is not None]
        told = await self._ashorter("\n".join(answer.shortened for answer in found))
        marks.append(perf_counter())
        context = [text for text in (summary, told) if text]
        answer = (await self.answer.acall(question=question, passages=context)).answer
        marks.append(perf_counter())
        return _prediction(answer, account, summary, asked, sub_questions, answered, context, marks)

    def _shorter(self, text: str) -> str:
        """The text itself where it cannot be shortened: what was found is worth more than its length."""
        try:
            return str(self.shorten(text=text).shortened)
        except (DSPyError, ModelError, ValueError) as error:
            _note("A summary", error)
            return text

    async def _ashorter(self, text: str) -> str:
        try:
            return str((await self.shorten.acall(text=text)).shortened)
        except (DSPyError, ModelError, ValueError) as error:
            _note("A summary", error)
            return text

    def _ask(self, piece: str) -> str | None:
        try:
            return str(self.ask(information=piece).sub_question).strip()
        except (DSPyError, ModelError) as error:
            _note("A sub-question", error)
            return None

    async def _aask(self, piece: str) -> str | None:
        try:
            return str((await self.ask.acall(information=piece)).sub_question).strip()
        except (DSPyError, ModelError) as error:
            _note("A sub-question", error)
            return None

    def _answer(self, question: str) -> SubAnswer | None:
        hits = self.retrieve(question, self.k)
        try:
            answer = str(self.sub_answer(question=question, passages=[hit.chunk.passage for hit in hits]).answer)
        except (DSPyError, ModelError) as error:
            _note("A sub-answer", error)
            return None
        return SubAnswer(question, answer, self._shorter(answer), tuple(hits))

    async def _aanswer(self, question: str) -> SubAnswer | None:
        hits = await asyncio.to_thread(self.retrieve, question, self.k)
        passages = [hit.chunk.passage for hit in hits]
        try:
            answer = str((await self.sub_answer.acall(question=question, passages=passages)).answer)
        except (DSPyError, ModelError) as error:
            _note("A sub-answer", error)
            return None
        return SubAnswer(question, answer, await self._ashorter(answer), tuple(hits))


def _note(what: str, error: Exception) -> None:
    """Raises what ends a run: a spent budget, a server that is down."""
    raise_if_final(error)
    logger.warning("%s failed: %s", what, in_one_line(error))


def _distinct(asked: Sequence[str | None]) -> list[str]:
    return list(dict.fromkeys(question for question in asked if question))


def _in_turn(answers: Sequence[SubAnswer]) -> list[Hit]:
    """The best of each, the second of each, ...; a passage where it comes first."""
    by_chunk: dict[str, Hit] = {}
    for row in zip_longest(*(answer.hits for answer in answers)):
        for hit in row:
            if hit is not None:
                by_chunk.setdefault(hit.chunk.id, hit)
    return list(by_chunk.values())


def _prediction(
    answer: str,
    account: str,
    summary: str,
    asked: Sequence[str | None],
    sub_questions: Sequence[str],
    answered: Sequence[SubAnswer | None],
    context: Sequence[str],
    marks: Sequence[float],
) -> dspy.Prediction:
    found = [each for each in answered if each is not None]
    stages = ("graph", "sub_questions", "sub_answers", "answer")
    seconds = dict(zip(stages, (end - start for start, end in pairwise(marks)), strict=True))
    return dspy.Prediction(
        answer=answer,
        hits=_in_turn(found),
        account=account,
        account_summary=summary,
        sub_questions=list(sub_questions),
        sub_answers=found,
        context=list(context),
        n_failed=sum(each is None for each in (*asked, *answered)),
        timings={**seconds, "wall": marks[-1] - marks[0]},
    )
