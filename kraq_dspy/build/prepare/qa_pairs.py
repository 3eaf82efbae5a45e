"""Makes question-answer pairs of all chunks once, in the index's results (QA-RAG leaves that to query time)."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from pydantic import TypeAdapter

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.copies import SharedByCopies
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.build.index.estimate import REHEARSED, Estimate, priced, rehearsing, scaled, spread
from kraq_dspy.errors import IndexStateError
from kraq_dspy.models.lms.adapter_name import with_adapter
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.qa_rag.write_pairs import WritePairs
from kraq_dspy.records import Chunk, Document, QAPair
from kraq_dspy.settings import Settings
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.stored import StageResults, StoredSteps

STAGE = "qa pairs"

_PAIRS: TypeAdapter[tuple[QAPair, ...]] = TypeAdapter(tuple[QAPair, ...])


@dataclass(frozen=True, slots=True)
class PairsReport:
    """`calls` counts what was asked of the model now; the rest was there. `failures` are chunks without pairs."""

    chunks: int
    pairs: int
    calls: int
    failures: int
    seconds: float


class StoredPairs(SharedByCopies):
    """A `QAPairSource` over an index's results, whatever model made them."""

    def __init__(self, results: ResultStore) -> None:
        self._results = results

    def pairs_of(self, chunk_ids: Sequence[str]) -> dict[str, tuple[QAPair, ...]]:
        outputs = self._results.outputs(STAGE, chunk_ids)
        return {chunk_id: _PAIRS.validate_python(output["pairs"]) for chunk_id, output in outputs.items()}


def make_qa_pairs(
    index: Index, models: LanguageModels, *, program: WritePairs | None = None, progress: Progress | None = None
) -> PairsReport:
    """The pairs of every chunk, by the model of the role "extractor". The index must be open for writing.

    What an earlier run made from the same chunk with the same model and instructions is kept; a chunk that fails is
    noted in the index's failures, and tried again next time. Raises IndexStateError for an index without chunks.
    """
    return run_coroutine(_make(index, models, program or WritePairs(), progress or SilentProgress()))


def estimate_qa_pairs(index: Index, settings: Settings, *, progress: Progress | None = None) -> Estimate:
    """What `make_qa_pairs` is still to pay, before a model is asked: one call for each chunk without pairs.

    Tokens are those of a rehearsal with the embedded model, over a sample where there are many chunks. Raises
    IndexStateError for an index without chunks.
    """
    return run_coroutine(_estimate(index, settings, WritePairs(), progress or SilentProgress()))


async def _estimate(index: Index, settings: Settings, program: WritePairs, progress: Progress) -> Estimate:
    chunks = _chunks(index)
    kept = StageResults(index.results, STAGE, program, with_adapter(settings.role("extractor")).model, None)
    missing = [item for item in map(_item, chunks) if kept.find(item) is None]
    sample = missing if len(missing) <= REHEARSED else random.Random(0).sample(missing, REHEARSED)
    with rehearsing(settings, progress) as (steps, meter):
        async for _ in steps.map(STAGE, "extractor", program, sample, total=len(sample)):
            pass
    expected = scaled(meter.total(), len(missing) / max(1, len(sample)))
    return Estimate(
        documents=index.count(Document),
        chunks=len(chunks),
        corpus_tokens=sum(chunk.n_tokens for chunk in chunks),
        rehearsed=len(sample),
        stages=(priced(STAGE, "extractor", settings, expected, *spread(expected), exact=True),),
    )


def _chunks(index: Index) -> list[Chunk]:
    chunks = list(index.all(Chunk))
    if not chunks:
        raise IndexStateError(f"{str(index.path)!r} has no passages. Build it again: kraq index CORPUS --out DIR")
    return chunks


def _item(chunk: Chunk) -> Item:
    return Item(chunk.id, {"passage": chunk.passage})


async def _make(index: Index, models: LanguageModels, program: WritePairs, progress: Progress) -> PairsReport:
    started = perf_counter()
    chunks = _chunks(index)
    before = index.results.calls(STAGE)
    index.results.prune(STAGE, [chunk.id for chunk in chunks])
    steps = StoredSteps(index.results, models, progress)
    paired = pairs = 0
    async for done in steps.map(STAGE, "extractor", program, map(_item, chunks), total=len(chunks)):
        paired += 1
        pairs += len(done.prediction.pairs)
    progress.finish(STAGE)
    calls, failures = index.results.calls(STAGE) - before, len(chunks) - paired
    return PairsReport(paired, pairs, calls, failures, perf_counter() - started)
