"""Begins a catalogue without anybody's questions: makes pairs from the documents and keeps only the best."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Literal

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.store.catalogue import Catalogue, NewEntry, content_hash, question_key
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, IndexStateError
from kraq_dspy.indexing.catalogue.synthetic_chunks import note_cut
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
    status = "approved" if approve else "pending"
    return run_coroutine(
        _synthesize(
            index, catalogue, models, plan or SyntheticPlan(), by, status, retriever, progress or SilentProgress()
        )
    )


def critics_of(plan: SyntheticPlan, judge: str) -> Critics:
    """The critics of a plan whose judge is the model of this name. Raises ConfigError for options of other critics."""
    rates = plan.least is not None or plan.audience is not None
    if plan.critics == "roundtrip" and rates:
        raise ConfigError('An audience and a least rating are for the critics "ratings"; "roundtrip" rates nothing.')
    return plan.critics or ("roundtrip" if is_small(judge) and not rates else "ratings")


async def _synthesize(
    index: Index,
    catalogue: Catalogue,
    models: LanguageModels,
    plan: SyntheticPlan,
    by: str,
    status: str,
    retriever: Retriever | None,
    progress: Progress,
) -> SyntheticReport:
    judge: RateSyntheticPair | RereadSyntheticPair
    critics: tuple[str, ...]
    if critics_of(plan, models.settings.role("judge").model) == "ratings":
        judge, critics, retriever = RateSyntheticPair(plan.audience or AUDIENCE, plan.least or BEST), CRITICS, None
    else:
        judge, critics = RereadSyntheticPair(), (RETRIEVAL, REREADING)
    calls = index.results.calls(WRITE, RATE)
    steps = StoredSteps(index.results, models, progress)
    sources: dict[str, AnswerSource] = {}
    everything: list[Chunk] = []
    for document in index.all(Document):
        everything += chunk_document(document, plan.chunks)
        sources[document.id] = AnswerSource(document.id, content_hash(document))
    if not everything:
        raise IndexStateError(f"{str(index.path)!r} has no text. Build it again: kraq index CORPUS --out DIR")
    note_cut(index, plan.chunks)
    for stage in (WRITE, RATE):
        index.results.prune(stage, [chunk.id for chunk in everything])
    total = len(everything) if plan.limit is None else min(plan.limit, len(everything))
    spread = (everything[place * len(everything) // total] for place in range(total))  # every part has its share
    chunks = {chunk.id: chunk for chunk in spread}
    pairs: dict[str, QAPair] = {}
    counts: Counter[str] = Counter()
    known = catalogue.known_keys()

    async def written() -> AsyncIterator[Item]:
        """Yield what the critics are to see, as it is written."""
        passages = (Item(chunk.id, {"passage": chunk.passage}) for chunk in chunks.values())
        async for done in steps.map(WRITE, "generator", WriteSyntheticPair(), passages, total=total):
            pair = QAPair(done.prediction.question, done.prediction.answer)
            if not question_key(pair.question):
                counts["empty"] += 1
                continue
            pairs[done.id] = pair
            chunk = chunks[done.id]
            if retriever is not None and not await leads_back(pair.question, chunk, retriever):
                counts[RETRIEVAL] += 1
                progress.advance(RATE)
                continue
            yield Item(done.id, {"question": pair.question, "answer": pair.answer, "passage": chunk.passage})

    rated = 0
    try:
        async for done in steps.map(RATE, "judge", judge, written(), total=total):
            rated += 1
            pair, source = pairs[done.id], sources[chunks[done.id].document_id]
            if done.prediction.rejected_by:
                counts[done.prediction.rejected_by] += 1
            elif catalogue.find(pair.question) is None and question_key(pair.question) in known:
                counts["known"] += 1  # somebody took it out
            else:
                entry = NewEntry(pair.question, pair.answer, status, (source,), "synthetic")
                report = catalogue.add_all([entry], by=by)
                counts["added"] += len(report.added + report.answered)
                counts["conflicts"] += len(report.conflicts)
                counts["known"] += len(report.unchanged + report.replaced)
    finally:
        await models.aclose()
    for stage in (WRITE, RATE):
        progress.finish(stage)
    return SyntheticReport(
        chunks=total,
        pairs=len(pairs),
        empty=counts["empty"],
        rejected={name: counts[name] for name in critics},
        added=counts["added"],
        known=counts["known"],
        conflicts=counts["conflicts"],
        failures=total - counts["empty"] - counts[RETRIEVAL] - rated,
        calls=index.results.calls(WRITE, RATE) - calls,
    )
