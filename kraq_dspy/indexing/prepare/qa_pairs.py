"""Makes question-answer pairs of all chunks once, in the index's results (QA-RAG leaves that to query time)."""

from collections.abc import Sequence

from pydantic import TypeAdapter

from kraq_dspy._internal.concurrency import SharedByCopies, run_coroutine
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.asset.store.sync import batches
from kraq_dspy.errors import IndexStateError
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.qa_rag import WritePairs
from kraq_dspy.records import Chunk, QAPair
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import StoredSteps

STAGE = "qa pairs"
_AT_ONCE = 500  # passages

_PAIRS: TypeAdapter[tuple[QAPair, ...]] = TypeAdapter(tuple[QAPair, ...])


class StoredPairs(SharedByCopies):
    """A `QAPairSource` over an index's results, whatever model made them."""

    def __init__(self, results: ResultStore) -> None:
        self._results = results

    def pairs_of(self, chunk_ids: Sequence[str]) -> dict[str, tuple[QAPair, ...]]:
        outputs = self._results.outputs(STAGE, chunk_ids)
        return {chunk_id: _PAIRS.validate_python(output["pairs"]) for chunk_id, output in outputs.items()}


def carry(whole: Index, view: Index) -> None:
    """Give a view the pairs of its passages: each was written of one passage alone."""
    for some in batches(view.ids(Chunk), _AT_ONCE):
        view.results.take(STAGE, whole.results, some)


def make_qa_pairs(
    index: Index, models: LanguageModels, *, program: WritePairs | None = None, progress: Progress | None = None
) -> dict[str, float]:
    """The pairs of every chunk, by the model of the role "extractor". The index must be open for writing.

    What an earlier run made from the same chunk with the same model and instructions is kept; a chunk that fails is
    noted in the index's failures, and tried again next time. Counts `chunks` with pairs, their `pairs`, `calls` that
    were made now, and `failures`. Raises IndexStateError for an index without chunks.
    """
    return run_coroutine(_make(index, models, program or WritePairs(), progress or SilentProgress()))


async def _make(index: Index, models: LanguageModels, program: WritePairs, progress: Progress) -> dict[str, float]:
    chunks = list(index.all(Chunk))
    if not chunks:
        raise IndexStateError(f"{str(index.path)!r} has no passages. Build it again: kraq index CORPUS --out DIR")

    before = index.results.calls(STAGE)
    index.results.prune(STAGE, [chunk.id for chunk in chunks])
    steps = StoredSteps(index.results, models, progress)
    paired = pairs = 0
    async for done in steps.map(
        STAGE, "extractor", program, (Item(chunk.id, {"passage": chunk.passage}) for chunk in chunks), total=len(chunks)
    ):
        paired += 1
        pairs += len(done.prediction.pairs)

    progress.finish(STAGE)
    return {
        "chunks": paired,
        "pairs": pairs,
        "calls": index.results.calls(STAGE) - before,
        "failures": len(chunks) - paired,
    }
