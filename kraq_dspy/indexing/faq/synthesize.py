"""Begins an FAQ cache without anybody's questions: makes pairs from the documents and keeps only the best."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.store.faq import FaqCache, NewEntry, content_hash, question_key
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, IndexStateError
from kraq_dspy.indexing.faq.synthetic_chunks import note_cut
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

    Among the pairs that passed, `added` are new; `known` exist already, or somebody has removed
    them; `conflicts` have another answer in the FAQ cache. `failures` are passages of which a step
    failed, an invalid rating included; the next run tries them again.
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


def make_synthetic_pairs(
    index: Index,
    faq: FaqCache,
    models: LanguageModels,
    plan: SyntheticPlan | None = None,
    *,
    by: str,
    approve: bool = False,
    retriever: Retriever | None = None,
    progress: Progress | None = None,
) -> SyntheticReport:
    """A pair from each chunk of the documents; those that every critic lets pass go into the FAQ cache, for review
    unless `approve`.

    Written by the model of the role "generator", judged by that of the role "judge". It reuses the
    results of earlier runs for the same chunk, models and instructions. The index must be open for
    writing. `retriever` is what "roundtrip" looks questions up with; without one it only reads
    again. Raises IndexStateError for an index without text, ValueError for `least` and `audience`
    out of range.
    """
    plan = plan or SyntheticPlan()
    judge: RateSyntheticPair | RereadSyntheticPair
    if critics_of(plan, models.settings.role("judge").model) == "ratings":
        judge = RateSyntheticPair(plan.audience or AUDIENCE, plan.least or BEST)
        critics: tuple[str, ...] = CRITICS
        retriever = None
    else:
        judge, critics = RereadSyntheticPair(), (RETRIEVAL, REREADING)

    steps = StoredSteps(index.results, models, progress or SilentProgress())
    entering = _Entering(faq, by, "approved" if approve else "pending")
    run = _Synthesis(index, steps, judge, retriever, entering)
    return run_coroutine(run.make(models, plan, critics))


def critics_of(plan: SyntheticPlan, judge: str) -> Critics:
    """The critics of a plan whose judge is the model of this name. Raises ConfigError for options of other critics."""
    rates = plan.least is not None or plan.audience is not None
    if plan.critics == "roundtrip" and rates:
        raise ConfigError('An audience and a least rating are for the critics "ratings"; "roundtrip" rates nothing.')
    return plan.critics or ("roundtrip" if is_small(judge) and not rates else "ratings")


class _Entering:
    """Puts pairs into the FAQ cache, and counts what became of them."""

    def __init__(self, faq: FaqCache, by: str, status: str) -> None:
        self.counts: Counter[str] = Counter()
        self._faq, self._by, self._status = faq, by, status
        self._known = faq.known_keys()

    def enter(self, pair: QAPair, source: AnswerSource) -> None:
        was_taken_out = self._faq.find(pair.question) is None
        if was_taken_out and question_key(pair.question) in self._known:
            self.counts["known"] += 1
            return

        entry = NewEntry(pair.question, pair.answer, self._status, (source,), "synthetic")
        report = self._faq.add_all([entry], by=self._by)
        self.counts["added"] += len(report.added + report.answered)
        self.counts["conflicts"] += len(report.conflicts)
        self.counts["known"] += len(report.unchanged + report.replaced)


class _Synthesis:
    """One run over the chunks: what was written of them, and how many of that were rejected."""

    def __init__(
        self,
        index: Index,
        steps: StoredSteps,
        judge: RateSyntheticPair | RereadSyntheticPair,
        retriever: Retriever | None,
        entering: _Entering,
    ) -> None:
        self._index, self._steps, self._judge = index, steps, judge
        self._retriever, self._entering = retriever, entering
        self._chunks: dict[str, Chunk] = {}  # those that are asked about
        self._sources: dict[str, AnswerSource] = {}  # by document id
        self._pairs: dict[str, QAPair] = {}  # by chunk id
        self._counts: Counter[str] = Counter()  # of empty and rejected pairs
        self._total = 0

    async def make(self, models: LanguageModels, plan: SyntheticPlan, critics: Sequence[str]) -> SyntheticReport:
        index, progress = self._index, self._steps.progress
        calls = index.results.calls(WRITE, RATE)
        self._read(plan)
        try:
            rated = await self._write_and_rate()
        finally:
            await models.aclose()
        for stage in (WRITE, RATE):
            progress.finish(stage)

        counts, entered = self._counts, self._entering.counts
        return SyntheticReport(
            chunks=self._total,
            pairs=len(self._pairs),
            empty=counts["empty"],
            rejected={name: counts[name] for name in critics},
            added=entered["added"],
            known=entered["known"],
            conflicts=entered["conflicts"],
            failures=self._total - counts["empty"] - counts[RETRIEVAL] - rated,
            calls=index.results.calls(WRITE, RATE) - calls,
        )

    def _read(self, plan: SyntheticPlan) -> None:
        """Cut the documents, and choose the chunks that are asked about. Raises IndexStateError."""
        index = self._index
        every_chunk: list[Chunk] = []
        for document in index.all(Document):
            every_chunk += chunk_document(document, plan.chunks)
            self._sources[document.id] = AnswerSource(document.id, content_hash(document))
        if not every_chunk:
            raise IndexStateError(f"{str(index.path)!r} has no text. Build it again: kraq index CORPUS --out DIR")

        note_cut(index, plan.chunks)
        for stage in (WRITE, RATE):
            index.results.prune(stage, [chunk.id for chunk in every_chunk])

        count = len(every_chunk)
        self._total = count if plan.limit is None else min(plan.limit, count)
        for place in range(self._total):  # every part has its share
            chunk = every_chunk[place * count // self._total]
            self._chunks[chunk.id] = chunk

    async def _write_and_rate(self) -> int:
        """How many pairs the judge rated; those that passed are in the FAQ cache."""
        rated = 0
        judging = self._steps.map(RATE, "judge", self._judge, self._written(), total=self._total)
        async for done in judging:
            rated += 1
            if done.prediction.rejected_by:
                self._counts[done.prediction.rejected_by] += 1
            else:
                source = self._sources[self._chunks[done.id].document_id]
                self._entering.enter(self._pairs[done.id], source)
        return rated

    async def _written(self) -> AsyncIterator[Item]:
        """Yield what the critics are to see, as it is written."""
        passages = (Item(each.id, {"passage": each.passage}) for each in self._chunks.values())
        writing = self._steps.map(WRITE, "generator", WriteSyntheticPair(), passages, total=self._total)
        async for done in writing:
            pair = QAPair(done.prediction.question, done.prediction.answer)
            if not question_key(pair.question):
                self._counts["empty"] += 1
                continue

            self._pairs[done.id] = pair
            chunk = self._chunks[done.id]
            if await self._leads_elsewhere(pair, chunk):
                self._counts[RETRIEVAL] += 1
                self._steps.progress.advance(RATE)
                continue
            shown = {"question": pair.question, "answer": pair.answer, "passage": chunk.passage}
            yield Item(done.id, shown)

    async def _leads_elsewhere(self, pair: QAPair, chunk: Chunk) -> bool:
        if self._retriever is None:
            return False
        return not await leads_back(pair.question, chunk, self._retriever)
