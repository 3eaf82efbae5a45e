"""Opens K2RAG's summarised corpus: every document in fewer words, its graph, and passages for hybrid retrieval.

It lies in the folder of the index that it is made from, as an index of its own (`DIR/k2rag.kraq`).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.asset.store.sync import TextVectors
from kraq_dspy.errors import IndexStateError, KraqError
from kraq_dspy.indexing.prepare.graph import IndexGraph, entity_vectors
from kraq_dspy.indexing.prepare.summarised import FOLDER, STAGE
from kraq_dspy.models.lms.engines.seq2seq import Seq2SeqSummariser
from kraq_dspy.ports import Embedder, VectorStore
from kraq_dspy.programs.k2rag.shorten import Shorten
from kraq_dspy.records import Chunk, Document, Entity, content_id
from kraq_dspy.settings import ChunkSettings, K2RAGSettings

PASSAGES = "passages"

FOR_VECTORS = ChunkSettings(tokens=256, overlap=20)  # section 3.1.2


class SummarisedCorpus(SharedByCopies):
    """The index of summaries, and its passages with their vectors. A `ChunkSource` of those passages."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.passages: dict[str, Chunk] = {chunk.id: chunk for chunk in passages_of(index)}

    @property
    def vectors(self) -> VectorStore:
        return self.index.vectors_named(PASSAGES)

    @property
    def has_graph(self) -> bool:
        return self.index.count(Entity) > 0

    @cached_property
    def graph(self) -> IndexGraph:
        """The graph of the summaries, as GraphRAG's searches need it."""
        return IndexGraph(self.index)

    def entity_vectors(self, embedder: Embedder) -> TextVectors:
        return entity_vectors(self.index, embedder)

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        return [self.passages[chunk_id] for chunk_id in ids]

    def close(self) -> None:
        self.index.close()


def shortener(settings: K2RAGSettings, *, share: float | None = None) -> Shorten:
    """The step that shortens texts as `[k2rag]` in kraq.toml says; `share` takes the place of the one for documents."""
    summariser = Seq2SeqSummariser(settings.summariser) if settings.summariser else None
    return Shorten(summariser, share=settings.share if share is None else share, least_tokens=settings.least_tokens)


def open_summarised(index: Index, embedder: Embedder) -> SummarisedCorpus:
    """The corpus that `build_summarised` made. Raises IndexStateError when it was not run, did not end, or the
    documents have changed since; EncoderMismatchError when another encoder made its vectors."""
    command = f"kraq precompute {index.path} k2rag"
    path = index.path / FOLDER
    if not (path / MANIFEST).exists():
        raise IndexStateError(f"{str(index.path)!r} has no summarised corpus, which k2rag needs. Run: {command}")

    corpus = SummarisedCorpus(Index.open(path))
    corpus.index.own_store = index.own_store
    try:
        if corpus.index.results.settled(STAGE) != made_from(index, corpus.passages):
            raise IndexStateError(
                f"The documents of {str(index.path)!r} have changed since they were summarised, or the summaries are "
                f"unfinished. Run: {command}"
            )
        corpus.index.require_encoder(embedder)
    except KraqError:
        corpus.close()
        raise
    return corpus


def passages_of(summarised: Index) -> Iterator[Chunk]:
    for document in summarised.all(Document):
        yield from chunk_document(document, FOR_VECTORS)


def made_from(index: Index, passage_ids: Iterable[str]) -> str:
    """Depends on the text of every chunk and of every passage of the summaries; their ids do."""
    return content_id(*sorted(index.ids(Chunk)), *sorted(passage_ids))
