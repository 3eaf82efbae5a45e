"""Asks a summarised corpus as K2RAG does, or a graph alone (Markondapatnaikuni et al., 2025, 3.1.3, algorithm 2)."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, ClassVar

import dspy

from kraq_dspy._internal.both_ways import at_once, call
from kraq_dspy._internal.clock import Clock
from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.step import (
    CALL_ERRORS,
    FittingPredict,
    SignatureLike,
    fitting_step,
    further_inputs,
    log_failure,
    prediction,
)
from kraq_dspy.errors import counted
from kraq_dspy.ports import RetrieverLike
from kraq_dspy.programs.graph.graph_local_search import GraphContextOptions, KnowledgeGraph, LocalContext
from kraq_dspy.programs.k2rag.shorten import Shorten, split
from kraq_dspy.records import Hit
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.words_and_meaning import HybridRetriever
from kraq_dspy.signatures import AnswerQuestion, AskSubQuestion, TellFromGraph
from kraq_dspy.spec import Note, ProgramSpec, Space, option
from kraq_dspy.state import SavableModule

logger = logging.getLogger(__name__)

PIECE_TOKENS, PIECE_OVERLAP = 128, 10  # of the graph's account, for a sub-question each (section 3.1.3)


@dataclass(frozen=True, slots=True)
class SubAnswer:
    """A sub-question with its passages (`hits`), its answer, and the answer in fewer words (`shortened`)."""

    question: str
    answer: str
    shortened: str
    hits: tuple[Hit, ...]


GRAPH_PASSAGES = 10
"""Passages at most that the account of the graph is told from."""


@dataclass(frozen=True)
class K2RAGOptions:
    k: int = option(10, "Passages for each sub-question.", least=1, counts="passages")
    weight: float = option(0.8, "Weight of meaning in the hybrid search; words get the rest.", least=0, most=1)


class K2RAG(SavableModule):
    """Answers sub-questions about a graph's account of the question (K2RAG paper, Algorithm 2).

    Args:
        retrieve: a retriever over the summarized corpus.
        knowledge: a `KnowledgeGraph` of the summarized corpus; None if there is no graph.
        shorten: shortens texts; by default with the program's model.
        k: the number of passages for a sub-question.
        signature: a signature, or instructions, for the step that answers.

    Raises:
        ConfigError: for a `signature` without an output that the program needs.
        ValueError: for a number out of range.

    The steps have the letters of the paper:

    - A: the model writes an account of the question from the graph.
    - B: `shorten` shortens the account.
    - C: the model asks a sub-question about each piece of the account.
    - D: for each sub-question, the program retrieves passages, answers the sub-question, and shortens the answer.
    - E: the model answers the question from the shortened account and the shortened answers.

    `kraq precompute DIR k2rag` makes the summarized corpus and its graph. If there is no graph, or the account is
    empty or unreadable, the question is the only sub-question. If a piece gets no sub-question, or a sub-question
    gets no answer, the program skips the piece and counts it.

    The text and the algorithm of the paper differ. The text splits the shortened account, the algorithm the whole
    account. We follow the algorithm here, because most shortened accounts are one piece. From the passages of a
    sub-question, the algorithm answers the user's question, and the text answers the sub-question. We follow the text
    here. The program answers all sub-questions at the same time; the paper answers them one after the other.

    The prediction has `answer`, `hits` (best of each sub-question in turn, each passage once), `account`,
    `account_summary`, `sub_questions`, `sub_answers` (SubAnswer), `context` (what the model answered from),
    `n_failed` and `timings`: seconds for "graph" (A, B), "sub_questions" (C), "sub_answers" (D), "answer" (E) and
    "wall".

    >>> from kraq_dspy import Corpus, make_lm
    >>> rag = K2RAG(Corpus.from_texts(["Ada lived in London.", "Byron wrote Don Juan."]).retriever, k=1)
    >>> rag.set_lm(make_lm("embedded"))
    >>> rag(question="Where did Ada live?").answer
    'London. Ada lived in London.'

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> program = K2RAG(space.retriever("hybrid"), KnowledgeGraph(space.entity_vectors, space.graph), k=2)
    >>> space.ask("Where did Ada live?", program).answer
    'London. Ada lived in London.'
    """

    SHARE: ClassVar[float] = 0.5
    """Of its length that an account or an answer keeps when it is shortened."""

    def __init__(
        self,
        retrieve: RetrieverLike,
        knowledge: Callable[[str], LocalContext] | None = None,
        shorten: Shorten | None = None,
        k: int = K2RAGOptions.k,
        signature: SignatureLike = None,
    ) -> None:
        super().__init__()
        require_options(K2RAGOptions, k=k)
        self.knowledge = knowledge
        self.retrieve = as_retriever(retrieve)
        self.k = k
        self.tell = FittingPredict(TellFromGraph, shorten="passages")
        self.ask = FittingPredict(AskSubQuestion, shorten="information")
        self.sub_answer = FittingPredict(AnswerQuestion, shorten="passages")
        self.shorten = shorten or Shorten(share=self.SHARE)
        self.answer = fitting_step(AnswerQuestion, signature, "passages")

    async def aforward(self, question: str, **inputs: Any) -> dspy.Prediction:
        further = further_inputs(self.answer, inputs, "passages")
        clock = Clock()
        await clock.begin("graph", "searching the graph")
        from_graph = await self._account(question)
        account = from_graph or ""
        summary = await self._shorter(account)
        await clock.begin("sub_questions", "asking sub-questions")
        replies = await at_once(self._sub_question, split(account, PIECE_TOKENS, PIECE_OVERLAP))
        asked_about = [str(reply.sub_question).strip() for reply in replies if reply is not None]
        sub_questions = list(dict.fromkeys(filter(None, asked_about))) or [question]
        await clock.begin("sub_answers", f"answering {counted(len(sub_questions), 'sub-question')}")
        outcomes = await at_once(self._sub_answer, sub_questions)
        sub_answers = [outcome for outcome in outcomes if outcome is not None]
        findings = await self._shorter("\n".join(sub_answer.shortened for sub_answer in sub_answers))
        await clock.begin("answer", "answering")
        passages = [text for text in (summary, findings) if text]
        reply = await call(self.answer, question=question, passages=passages, **further)
        return prediction(
            reply,
            hits=_in_turn(sub_answers),
            account=account,
            account_summary=summary,
            sub_questions=sub_questions,
            sub_answers=sub_answers,
            context=passages,
            n_failed=sum(each is None for each in (from_graph, *replies, *outcomes)),
            timings=clock.timings(),
        )

    async def _shorter(self, text: str) -> str:
        """Shorten the text; return it whole if that fails, since losing it costs more than its
        length."""
        try:
            return str((await call(self.shorten, text=text)).shortened)
        except (*CALL_ERRORS, ValueError) as error:
            log_failure(logger, "A summary failed", error)
            return text

    async def _account(self, question: str) -> str | None:
        """What the graph tells of the question, "" without one; None where the call failed."""
        if self.knowledge is None:
            return ""
        context = await call(self.knowledge, question)
        try:
            return str((await call(self.tell, question=question, **context.shown)).account).strip()
        except CALL_ERRORS as error:
            log_failure(logger, "An account of the graph failed", error)
            return None

    async def _sub_question(self, piece: str) -> dspy.Prediction | None:
        try:
            return await call(self.ask, information=piece)
        except CALL_ERRORS as error:
            log_failure(logger, "A sub-question failed", error)
            return None

    async def _sub_answer(self, question: str) -> SubAnswer | None:
        hits = await call(self.retrieve, question, self.k)
        passages = [hit.chunk.passage for hit in hits]
        try:
            reply = await call(self.sub_answer, question=question, passages=passages)
        except CALL_ERRORS as error:
            log_failure(logger, "A sub-answer failed", error)
            return None
        answer = str(reply.answer)
        return SubAnswer(question, answer, await self._shorter(answer), tuple(hits))


def _in_turn(answers: Sequence[SubAnswer]) -> list[Hit]:
    """The best of each, the second of each, ...; a passage where it comes first."""
    by_chunk: dict[str, Hit] = {}
    for row in zip_longest(*(answer.hits for answer in answers)):
        for hit in row:
            if hit is not None:
                by_chunk.setdefault(hit.chunk.id, hit)
    return list(by_chunk.values())


def make_k2rag(space: Space, part: None, options: K2RAGOptions) -> K2RAG:
    corpus, embedder = space.summarised, space.embedder
    knowledge = None
    if corpus.has_graph:
        knowledge = KnowledgeGraph(corpus.entity_vectors(embedder), corpus.graph, k=GRAPH_PASSAGES)
    search = HybridRetriever(corpus, corpus.vectors, embedder, weight=options.weight)
    return K2RAG(search, knowledge, space.shortener(K2RAG.SHARE), k=options.k)


def notes(answer: dspy.Prediction) -> Iterator[Note]:
    """The graph's account, and each sub-question with its answer."""
    yield Note("the graph: ", answer.account_summary or "nothing", 400, "strong")
    for each in answer.sub_answers:
        yield Note("  ? ", each.question, tone="found")
        yield Note("    ", each.shortened, 200)
    if answer.n_failed:
        failed = counted(answer.n_failed, "call")
        yield Note(f"{failed} failed; see --verbose for the reasons.", tone="doubtful")


K2RAG_SPEC = ProgramSpec(
    "k2rag",
    "From a summarised corpus: a graph's account of the question, then passages for sub-questions.",
    make_k2rag,
    "K2RAG",
    K2RAGOptions,
    takes="nothing",
    prepared=("k2rag",),
    roles={"shorten": "summarizer"},
    settings=("k2rag",),
    keys=("account", "account_summary", "sub_questions", "sub_answers", "context", "n_failed"),
    notes=notes,
    source="K2RAG paper, Algorithm 2",
)


class NaiveGraphRAG(SavableModule):
    """Answers only from a graph's account of the question: the baseline of the K2RAG paper.

    Args:
        knowledge: gathers what the graph says about the question.
        signature: a signature, or instructions, for the step that answers.

    Raises:
        ConfigError: for a `signature` without an output that the program needs.

    The prediction has `answer`, `hits` (the passages of the graph's entities), `account` and `timings`: seconds for
    "retrieve", "tell", "answer" and "wall".

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> program = NaiveGraphRAG(KnowledgeGraph(space.entity_vectors, space.graph))
    >>> space.ask("Where did Ada live?", program).hits[0].chunk.title
    'Ada'
    """

    def __init__(self, knowledge: KnowledgeGraph, signature: SignatureLike = None) -> None:
        super().__init__()
        self.knowledge = knowledge
        self.k = knowledge.k
        self.tell = FittingPredict(TellFromGraph, shorten="passages")
        self.answer = fitting_step(AnswerQuestion, signature, "passages")

    async def aforward(self, question: str, **inputs: Any) -> dspy.Prediction:
        further = further_inputs(self.answer, inputs, "passages")
        clock = Clock()
        await clock.begin("retrieve", "searching the graph")
        context = await call(self.knowledge, question)
        await clock.begin("tell")
        account = (await call(self.tell, question=question, **context.shown)).account.strip()
        await clock.begin("answer", "answering")
        reply = await call(self.answer, question=question, passages=[account] if account else [], **further)
        return prediction(reply, hits=list(context.hits), account=account, timings=clock.timings())


@dataclass(frozen=True)
class NaiveGraphOptions(GraphContextOptions):
    k: int = option(10, "Passages at most.", least=1, counts="passages")


NAIVE_GRAPH = ProgramSpec(
    "naive-graph",
    "Once, from the whole corpus's graph.",
    lambda space, part, options: NaiveGraphRAG(KnowledgeGraph(space.entity_vectors, space.graph, **asdict(options))),
    "NaiveGraphRAG",
    NaiveGraphOptions,
    takes="nothing",
    prepared=("graph",),
    keys=("account",),
    source="K2RAG paper, baseline",
)
