"""Makes question-answer pairs of all chunks once, in the index's results (QA-RAG leaves that to query time)."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from pydantic import TypeAdapter

from kraq_dspy._internal.concurrency import SharedByCopies, run_coroutine
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.build.index.estimate import Estimate, one_call_each
from kraq_dspy.errors import IndexStateError
from kraq_dspy.models.lms.local_models import with_adapter
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.qa_rag import WritePairs
from kraq_dspy.records import Chunk, Document, QAPair
from kraq_dspy.settings import Settings
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import StageResults, StoredSteps

STAGE = "qa pairs"
_WRITTEN = 1.5  # tokens of the pairs for each token of the passage

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


def estimate_qa_pairs(index: Index, settings: Settings) -> Estimate:
    """What `make_qa_pairs` is still to pay: one call for each chunk without pairs.

    Raises IndexStateError for an index without chunks.
    """
    chunks = _chunks(index)
    kept = StageResults(index.results, STAGE, WritePairs(), with_adapter(settings.role("extractor")).model, None)
    missing = [chunk.n_tokens for chunk in chunks if kept.find(_item(chunk)) is None]
    stage = one_call_each(STAGE, "extractor", missing, _WRITTEN, settings)
    tokens = sum(chunk.n_tokens for chunk in chunks)
    return Estimate(index.count(Document), len(chunks), tokens, (stage,))


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
