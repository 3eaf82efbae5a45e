"""Begins a catalogue without anybody's questions: makes pairs from the documents and keeps only the best."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.store.catalogue import Catalogue, NewEntry, content_hash, question_key
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, IndexStateError
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress, Retriever, SilentProgress
from kraq_dspy.programs.kraq.by_size import is_small
from kraq_dspy.programs.qa_search.critics import (
    BEST,
    CRITICS,
    REREADING,
    RETRIEVAL,
    RateSyntheticPair,
    RereadSyntheticPair,
    WriteSyntheticPair,
    leads_back,
)
from kraq_dspy.records import AnswerSource, Chunk, Document, QAPair
from kraq_dspy.settings import ChunkSettings
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import StoredSteps

WRITE, RATE = "synthetic pairs", "critics"
AUDIENCE = "people who want to know what these documents say"
CHUNKS = ChunkSettings(tokens=2000, overlap=200)  # the paper's
Critics = Literal["ratings", "roundtrip"]


@dataclass(frozen=True, slots=True)
class SyntheticPlan:
    """Pairs from chunks of the documents as `chunks` cuts them, or from `limit` of those, spread evenly.

    With the critics "ratings" (the paper's) each of three must rate a pair `least` (1 to 5) or more for an `audience`.
    With "roundtrip" its question must lead back to the passage, and the passage to its answer. None: "roundtrip" for a
    judge of fewer than two billion parameters, which cannot rate, unless `least` or `audience` is given.
    """

    audience: str | None = None
    least: int | None = None
    chunks: ChunkSettings = CHUNKS
    limit: int | None = None
    critics: Critics | None = None


@dataclass(frozen=True, slots=True)
class SyntheticReport:
    """`rejected` counts by the critic that did not let a pair pass; `empty` passages brought none.

    Of those that passed, `added` are new; `known` were there, or were taken out by somebody; `conflicts` have another
    answer there. `failures` are passages of which a step failed, an invalid rating included; the next run tries them
    again.
    """

    chunks: int
    pairs: int
    empty: int
    rejected: Mapping[str, int]
    added: int
    known: int
    conflicts: int
    failures: int
    calls: int
    seconds: float


def make_synthetic_pairs(
    index: Index,
    catalogue: Catalogue,
    models: LanguageModels,
    plan: SyntheticPlan | None = None,
    *,
    by: str,
    approve: bool = False,
    retriever: Retriever | None = None,
    progress: Progress | None = None,
) -> SyntheticReport:
    """A pair from each chunk of the documents; those that every critic lets pass go into the catalogue, for review
    unless `approve`.

    Written by the model of the role "generator", judged by that of the role "judge". What an earlier run made from the
    same chunk, with the same models and instructions, is not asked for again. The index must be open for writing.
    `retriever` is what "roundtrip" looks questions up with; without one it only reads again.
    Raises IndexStateError for an index without text, ValueError for `least` and `audience` out of range.
    """
    progress = progress or SilentProgress()
    plan = plan or SyntheticPlan()
    rates = critics_of(plan, models.settings.role("judge").model) == "ratings"
    judge = RateSyntheticPair(plan.audience or AUDIENCE, plan.least or BEST) if rates else RereadSyntheticPair()
    names = CRITICS if rates else (RETRIEVAL, REREADING)
    status = "approved" if approve else "pending"
    synthesis = _PairSynthesis(
        index, catalogue, models, judge, names, None if rates else retriever, by, status, progress
    )
    return run_coroutine(synthesis.run(plan.chunks, plan.limit))


def critics_of(plan: SyntheticPlan, judge: str) -> Critics:
    """The critics of a plan whose judge is the model of this name. Raises ConfigError for options of other critics."""
    rates = plan.least is not None or plan.audience is not None
    if plan.critics == "roundtrip" and rates:
        raise ConfigError('An audience and a least rating are for the critics "ratings"; "roundtrip" rates nothing.')
    return plan.critics or ("roundtrip" if is_small(judge) and not rates else "ratings")


@dataclass
class _PairSynthesis:
    index: Index
    catalogue: Catalogue
    models: LanguageModels
    judge: RateSyntheticPair | RereadSyntheticPair
    critics: tuple[str, ...]
    retriever: Retriever | None
    by: str
    status: str
    progress: Progress
    sources: dict[str, AnswerSource] = field(default_factory=dict)
    chunks: dict[str, Chunk] = field(default_factory=dict)
    pairs: dict[str, QAPair] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.steps = StoredSteps(self.index.results, self.models, self.progress)

    async def run(self, settings: ChunkSettings, limit: int | None) -> SyntheticReport:
        started, calls = perf_counter(), self.index.results.calls(WRITE, RATE)
        everything: list[Chunk] = []
        for document in self.index.all(Document):
            everything += chunk_document(document, settings)
            self.sources[document.id] = AnswerSource(document.id, content_hash(document))
        if not everything:
            raise IndexStateError(f"{str(self.index.path)!r} has no text. Build it again: kraq index CORPUS --out DIR")
        for stage in (WRITE, RATE):
            self.index.results.prune(stage, [chunk.id for chunk in everything])
        self.chunks = {chunk.id: chunk for chunk in _spread(everything, limit)}
        known = self.catalogue.known_keys()
        total, rated = len(self.chunks), 0
        try:
            async for done in self.steps.map(RATE, "judge", self.judge, self._written(total), total=total):
                rated += 1
                if done.prediction.rejected_by:
                    self.counts[done.prediction.rejected_by] += 1
                else:
                    self._keep(done.id, known)
        finally:
            await self.models.aclose()
        for stage in (WRITE, RATE):
            self.progress.finish(stage)
        return SyntheticReport(
            chunks=total,
            pairs=len(self.pairs),
            empty=self.counts["empty"],
            rejected={name: self.counts[name] for name in self.critics},
            added=self.counts["added"],
            known=self.counts["known"],
            conflicts=self.counts["conflicts"],
            failures=total - self.counts["empty"] - self.counts[RETRIEVAL] - rated,
            calls=self.index.results.calls(WRITE, RATE) - calls,
            seconds=perf_counter() - started,
        )

    async def _written(self, total: int) -> AsyncIterator[Item]:
        """What the critics are to see, as it is written."""
        passages = (Item(chunk.id, {"passage": chunk.passage}) for chunk in self.chunks.values())
        async for done in self.steps.map(WRITE, "generator", WriteSyntheticPair(), passages, total=total):
            pair = QAPair(done.prediction.question, done.prediction.answer)
            if not question_key(pair.question):
                self.counts["empty"] += 1
                continue
            self.pairs[done.id] = pair
            chunk = self.chunks[done.id]
            if self.retriever is not None and not await leads_back(pair.question, chunk, self.retriever):
                self.counts[RETRIEVAL] += 1
                self.progress.advance(RATE)
                continue
            yield Item(done.id, {"question": pair.question, "answer": pair.answer, "passage": chunk.passage})

    def _keep(self, chunk_id: str, known: set[str]) -> None:
        pair = self.pairs[chunk_id]
        there = self.catalogue.find(pair.question)
        if there is None and question_key(pair.question) in known:  # somebody took it out
            self.counts["known"] += 1
            return
        source = self.sources[self.chunks[chunk_id].document_id]
        entry = NewEntry(pair.question, pair.answer, self.status, (source,), "synthetic")
        report = self.catalogue.add_all([entry], by=self.by)
        self.counts["added"] += len(report.added + report.answered)
        self.counts["conflicts"] += len(report.conflicts)
        self.counts["known"] += len(report.unchanged + report.replaced)


def _spread(chunks: list[Chunk], limit: int | None) -> list[Chunk]:
    """`limit` of them at even distances, so that every part of the corpus has its share."""
    if limit is None or limit >= len(chunks):
        return chunks
    return [chunks[place * len(chunks) // limit] for place in range(limit)]
