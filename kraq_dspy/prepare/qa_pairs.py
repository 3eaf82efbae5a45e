"""Makes question-answer pairs of all chunks once, in the index's results (QA-RAG leaves that to query time)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from pydantic import TypeAdapter

from kraq_dspy.copies import SharedByCopies
from kraq_dspy.errors import IndexStateError
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.qa_rag.write_pairs import WritePairs
from kraq_dspy.records import Chunk, QAPair
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.stored import StoredSteps
from kraq_dspy.stores.index import Index
from kraq_dspy.stores.results import ResultStore

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
    if index.count(Chunk) == 0:
        raise IndexStateError(f"{str(index.path)!r} has no passages. Build it again: kraq index CORPUS --out DIR")
    return asyncio.run(_make(index, models, program or WritePairs(), progress or SilentProgress()))


async def _make(index: Index, models: LanguageModels, program: WritePairs, progress: Progress) -> PairsReport:
    started = perf_counter()
    before = index.results.calls(STAGE)
    index.results.prune(STAGE, index.ids(Chunk))
    steps = StoredSteps(index.results, models, progress)
    items = (Item(chunk.id, {"passage": chunk.passage}) for chunk in index.all(Chunk))
    chunks = pairs = 0
    total = index.count(Chunk)
    async for done in steps.map(STAGE, "extractor", program, items, total=total):
        chunks += 1
        pairs += len(done.prediction.pairs)
    progress.finish(STAGE)
    return PairsReport(chunks, pairs, index.results.calls(STAGE) - before, total - chunks, perf_counter() - started)
