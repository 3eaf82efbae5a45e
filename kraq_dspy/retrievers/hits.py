"""Says what a retriever is asked for, checked once, and turns ids and scores into hits."""

import asyncio
import heapq
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar

import dspy

from kraq_dspy._internal.checks import require_counts
from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.spans import retrieval_span
from kraq_dspy.ports import ChunkSource, Embedder, Filters, Retriever, Vectors
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.state import SavableModule

Scored = list[tuple[str, float]]
"""Chunk ids with scores, best first."""
ASKING = "kraq_hit_check"
"""The setting of DSPy that holds the check of whoever asks; DSPy hands its settings on to its threads and tasks."""

PASSAGES = 10
"""Hits of a search that names no `k`."""


@dataclass(frozen=True, slots=True, eq=False)
class RetrievalRequest:
    """The arguments of a retriever as one value. `dataclasses.replace` makes a changed copy.

    Args:
        question: the question, not empty.
        k: the number of passages, 1 or more.
        exclude: ids of chunks that must not be found.
        filters: for each key of the metadata, the value or a list of allowed values.
        vector: the question's embedding, float32 `[dimension]`; None to let the retriever encode the question.

    Raises:
        TypeError: if `question` is no text or `k` no number.
        ValueError: for an empty question, or a `k` below 1.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> RetrievalRequest("Where did Ada live?", k=1).send_to(space.retriever("dense"))[0].chunk.title
    'Ada'
    """

    question: str
    k: int
    exclude: Collection[str] = frozenset()
    filters: Filters | None = None
    vector: Vectors | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.question, str):
            raise TypeError(f"question is {self.question!r:.80}; expected a text.")
        if not self.question.strip():
            raise ValueError(f"The question is {self.question!r}; expected some text.")
        require_counts("passages", k=self.k)

    def send_to(self, retrieve: Retriever) -> list[Hit]:
        return retrieve(self.question, self.k, exclude=self.exclude, filters=self.filters, vector=self.vector)

    def embedded_by(self, embedder: Embedder) -> Vectors:
        """The question's embedding `[dimension]`: the one that came along, or else made now."""
        if self.vector is not None:
            return self.vector
        vector: Vectors = embedder.encode_queries([self.question])[0]
        return vector


class HitCheck(Protocol):
    """Looks at hits before anybody sees them, or a prompt is written of them."""

    def __call__(self, hits: Sequence[Hit]) -> None:
        """Raises ScopeError for one that may not be read."""


def looked_at(hits: list[Hit], own: HitCheck | None = None) -> list[Hit]:
    """The same hits, once the check of whoever made the retriever, and that of whoever asks, have seen them.

    A check raises; it leaves nothing out: what may not be read should not have been found at all.
    """
    for check in (own, dspy.settings.get(ASKING)):
        if check is not None:
            check(hits)
    return hits


@contextmanager
def hits_checked_by(check: HitCheck | None) -> Iterator[None]:
    """Inside, every retriever's hits are looked at by `check`, whoever made it."""
    with dspy.context(**{ASKING: check}) if check is not None else nullcontext():
        yield


class LooksAgain:
    """What finds passages, and has `check` look at them before anybody sees them."""

    check: HitCheck | None = None


def have_looked_at(program: dspy.Module, check: HitCheck) -> None:
    """Give the check to all in the program that finds passages: it holds then, too, where the program is called by
    itself, as optimizers do."""
    for _, module in program.named_sub_modules():
        for part in (module, *vars(module).values()):
            if isinstance(part, LooksAgain):
                part.check = check


class _KeepsContract(LooksAgain):
    """What every retriever of this library says of itself: that it keeps the contract, who looks at its hits, its name
    with what was chosen for it."""

    keeps_contract: ClassVar[bool] = True

    def __repr__(self) -> str:
        return described(self)


class Retrieving(_KeepsContract, SharedByCopies):
    """Makes a `ports.Retriever` of `find`, in both forms.

    >>> from kraq_dspy import Corpus
    >>> class Rivers(Retrieving):
    ...     search = Corpus.from_texts(["The Rhine is a river."]).retriever
    ...     def find(self, request: RetrievalRequest) -> list[Hit]:
    ...         return request.send_to(self.search)
    >>> Rivers()("Which rivers are there?", 1)[0].chunk.text
    'The Rhine is a river.'
    """

    def find(self, request: RetrievalRequest) -> list[Hit]:
        """Return what `ports.Retriever` promises, of a request that makes sense."""
        raise NotImplementedError(f"{type(self).__name__} has no `find`.")

    def __call__(
        self,
        question: str,
        k: int = PASSAGES,
        *,
        exclude: Iterable[str] = frozenset(),
        filters: Filters | None = None,
        vector: Any = None,
    ) -> list[Hit]:
        """The best `k` passages for the question. The types are those that `dspy.Tool` can describe to a model."""
        request = RetrievalRequest(question, k, frozenset(exclude), filters, vector)
        with retrieval_span(type(self).__name__, question) as span:
            return span.found(looked_at(self.find(request), self.check))

    async def acall(self, *args: Any, **kwargs: Any) -> list[Hit]:
        """Do as a call does, in a thread: a search must not hold up the event loop."""
        return await asyncio.to_thread(self, *args, **kwargs)


class RetrievingModule(_KeepsContract, SavableModule):
    """Makes a `ports.Retriever` of a coroutine `find`. The result is a retriever and a DSPy module. So DSPy optimizes
    and saves the steps of the retriever together with the program around it.
    """

    async def find(self, request: RetrievalRequest) -> list[Hit]:
        """Return what `ports.Retriever` promises, of a request that makes sense."""
        raise NotImplementedError(f"{type(self).__name__} has no `find`.")

    def __call__(
        self,
        question: str,
        k: int = PASSAGES,
        *,
        exclude: Iterable[str] = frozenset(),
        filters: Filters | None = None,
        vector: Any = None,
    ) -> list[Hit]:
        """The best `k` passages for the question. The types are those that `dspy.Tool` can describe to a model."""
        hits: list[Hit] = super().__call__(question, k, exclude=exclude, filters=filters, vector=vector)
        return hits

    async def aforward(
        self,
        question: str,
        k: int = PASSAGES,
        *,
        exclude: Iterable[str] = frozenset(),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> list[Hit]:
        request = RetrievalRequest(question, k, frozenset(exclude), filters, vector)
        return looked_at(await self.find(request), self.check)


def described(retriever: object) -> str:
    """The retriever's class with what was chosen for it: its numbers and words, and the retrievers inside.

    >>> from kraq_dspy import Workspace
    >>> Workspace.open("ada.kraq").retriever("hybrid")
    HybridRetriever(weight=0.5, okapi=0.0, pool=50)
    """
    chosen = []
    for name, value in vars(retriever).items():
        is_plain = isinstance(value, int | float | str)
        is_retriever = getattr(value, "keeps_contract", False)
        if not name.startswith("_") and (is_plain or is_retriever):
            chosen.append(f"{name}={value!r}")
    return f"{type(retriever).__name__}({', '.join(chosen)})"


FOR_AGENTS = (
    "Finds passages of the documents, best first. `question` is what to look for, in words or as a whole question; "
    "`k` is how many passages to return, 10 if it is not given. Leave out `exclude` (ids of passages that are known "
    "already), `filters` (values that the passages' metadata must have) and `vector`. How it searches: {help}"
)

LONGEST_NAME = 64
"""Characters of a tool's name that OpenAI's API takes."""

RetrieverT = TypeVar("RetrieverT", bound=Retriever)


def named_for_agents(
    retrieve: RetrieverT, name: str, help: str, options: Mapping[str, object] = MappingProxyType({})
) -> RetrieverT:
    """The same retriever, called "search_" with its registered `name`, and described by what it takes and its `help`:
    `dspy.Tool` shows both to an agent's model, which could not use what is written for programmers.

    The `options` that a caller chose are in the name: of two tools of one name, `dspy.ReAct` keeps only one.

    >>> from kraq_dspy import Workspace
    >>> dspy.Tool(Workspace.open("ada.kraq").retriever("hybrid")).name
    'search_hybrid'
    """
    if not getattr(retrieve, "keeps_contract", False):  # somebody else's, which has its own name
        return retrieve

    words = ["search", name]
    for option, value in options.items():
        words += [option, str(value)]
    vars(retrieve)["__name__"] = re.sub(r"[^a-z0-9]+", "_", "_".join(words).lower()).strip("_")[:LONGEST_NAME]
    vars(retrieve)["__doc__"] = FOR_AGENTS.format(help=help)
    return retrieve


def to_hits(chunks: ChunkSource, scored: Sequence[tuple[str, float]], query: str, why: str) -> list[Hit]:
    """One hit for each (chunk id, score), in their order."""
    records = chunks.chunks_by_id([chunk_id for chunk_id, _ in scored])
    return looked_at([Hit(chunk, score, query, why) for chunk, (_, score) in zip(records, scored, strict=True)])


def best_first(scores: dict[str, float], k: int) -> Scored:
    """Choose the highest scores. Equal scores are in the order of their ids, so the same question gets the same
    answer.

    Args:
        scores: scores by id.
        k: how many to choose.

    Returns:
        Pairs of id and score, best first.

    >>> best_first({"b": 0.5, "a": 0.5, "c": 0.9}, k=2)
    [('c', 0.9), ('a', 0.5)]
    """
    return heapq.nsmallest(k, scores.items(), key=lambda item: (-item[1], item[0]))


def ranked(chunks: Mapping[str, Chunk], scores: dict[str, float], query: str, k: int, why: str) -> list[Hit]:
    """One hit for each of the `k` highest `scores` (by chunk id), as `best_first`."""
    return [Hit(chunks[chunk_id], score, query, why) for chunk_id, score in best_first(scores, k)]


def fused(rankings: Iterable[Sequence[Hit]], constant: float, query: str, k: int, why: str) -> list[Hit]:
    """Reciprocal rank fusion (Cormack et al., SIGIR 2009): a chunk scores the sum of `1 / (constant + rank)` over the
    rankings that have it, ranks from 1."""
    chunks: dict[str, Chunk] = {}
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            chunks[hit.chunk.id] = hit.chunk
            scores[hit.chunk.id] = scores.get(hit.chunk.id, 0.0) + 1 / (constant + rank)
    return ranked(chunks, scores, query, k, why)


def falling(hits: Sequence[Hit]) -> list[Hit]:
    """The same hits in the same order, none with a higher score than the one before it."""
    lowered: list[Hit] = []
    for hit in hits:
        limit = lowered[-1].score if lowered else hit.score
        lowered.append(hit if hit.score <= limit else replace(hit, score=limit))
    return lowered


def matches(chunk: Chunk, filters: Filters | None) -> bool:
    """Test whether a chunk meets conditions, as the stores do: 1 and 1.0 are equal, 1 and True are not.

    Args:
        chunk: the chunk. Conditions are about its metadata and its `document_id`.
        filters: for each key, the value or a list of allowed values; None for no condition.

    Returns:
        Whether the chunk meets all of them.
    """
    known = {**chunk.metadata, "document_id": chunk.document_id}
    for key, allowed in (filters or {}).items():
        values = allowed if isinstance(allowed, (list, tuple, set, frozenset)) else [allowed]
        if key not in known:
            return False
        own = known[key]
        if not any(own == value and isinstance(own, bool) == isinstance(value, bool) for value in values):
            return False
    return True
