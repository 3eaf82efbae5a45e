"""Makes K2RAG's summarised corpus: every document in fewer words, its graph, and passages for hybrid retrieval.

It lies in the folder of the index that it is made from, as an index of its own (`DIR/k2rag.kraq`).
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from kraq_dspy._internal.concurrency import SharedByCopies, run_coroutine
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.asset.store.sync import TextVectors, chunk_point, sync_vectors
from kraq_dspy.asset.store.vectors.copying import copy_points
from kraq_dspy.errors import IndexStateError, KraqError
from kraq_dspy.indexing.index.build import abuild_index
from kraq_dspy.indexing.prepare.graph import IndexGraph, entity_vectors
from kraq_dspy.indexing.prepare.summarised import FOLDER, STAGE
from kraq_dspy.models.lms.engines.seq2seq import Seq2SeqSummariser
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress, SilentProgress, VectorStore
from kraq_dspy.programs.k2rag.shorten import Shorten
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import Chunk, Document, Entity, Question, content_id
from kraq_dspy.settings import ChunkSettings, K2RAGSettings
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import StoredSteps

PASSAGES = "passages"

FOR_VECTORS = ChunkSettings(tokens=256, overlap=20)  # section 3.1.2
FOR_GRAPH = ChunkSettings(tokens=300, overlap=100)


MakePart: TypeAlias = Callable[[Index, Path, type[KRAQ]], None]
"""Makes of another index the part with the same documents, as an index in a folder."""


class SummarisedCorpus(SharedByCopies):
    """The index of summaries, and its passages with their vectors. A `ChunkSource` of those passages."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.passages: dict[str, Chunk] = {chunk.id: chunk for chunk in _passages(index)}

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


def build_summarised(
    index: Index,
    embedder: Embedder,
    models: LanguageModels,
    *,
    shorten: Shorten | None = None,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Make the summarised corpus, as `kraq precompute DIR --k2rag` does. The index must be open for writing.

    An interrupted run goes on: summaries and the graph's answers are found again, and another run of the same command
    asks nothing. A document that cannot be summarised stands in full, is noted, and is tried again by the next run.
    Counts `documents`, their tokens before and after (`reduction` is the share that went), `passages`, `entities`,
    `calls` that were made now for summaries and graph, and `failures`. Raises IndexStateError for an
    index without documents.
    """
    if index.count(Document) == 0:
        raise IndexStateError(
            f"{str(index.path)!r} has no documents to summarise. Build it again: kraq index CORPUS --out DIR"
        )
    shorten = shorten or shortener(models.settings.k2rag)
    return run_coroutine(_build(index, embedder, models, shorten, progress or SilentProgress()))


def shortener(settings: K2RAGSettings, *, share: float | None = None) -> Shorten:
    """The step that shortens texts as `[k2rag]` in kraq.toml says; `share` takes the place of the one for documents."""
    summariser = Seq2SeqSummariser(settings.summariser) if settings.summariser else None
    return Shorten(summariser, share=settings.share if share is None else share, least_tokens=settings.least_tokens)


def open_summarised(index: Index, embedder: Embedder) -> SummarisedCorpus:
    """The corpus that `build_summarised` made. Raises IndexStateError when it was not run, did not end, or the
    documents have changed since; EncoderMismatchError when another encoder made its vectors."""
    command = f"kraq precompute {index.path} --k2rag"
    path = index.path / FOLDER
    if not (path / MANIFEST).exists():
        raise IndexStateError(f"{str(index.path)!r} has no summarised corpus, which k2rag needs. Run: {command}")
    corpus = SummarisedCorpus(Index.open(path))
    corpus.index.own_store = index.own_store
    try:
        if corpus.index.results.settled(STAGE) != _made_from(index, corpus.passages):
            raise IndexStateError(
                f"The documents of {str(index.path)!r} have changed since they were summarised, or that did not end. "
                f"Run: {command}"
            )
        corpus.index.require_encoder(embedder)
    except KraqError:
        corpus.close()
        raise
    return corpus


def carry(whole: Index, view: Index, embedder: Embedder, make_part: MakePart) -> None:
    """Give a view the summaries of its documents: each was written of one document alone. Their graph is made again, by
    `make_part`."""
    path = whole.path / FOLDER
    if not (path / MANIFEST).exists():
        return
    with Index.open(path) as summarised:
        passages = [chunk.id for chunk in _passages(summarised)]
        if summarised.results.settled(STAGE) != _made_from(whole, passages):
            return  # of documents as they were
        make_part(summarised, view.path / FOLDER, GraphOnly)

        with Index.open(view.path / FOLDER, write=True) as part:
            points = {chunk.id: chunk_point(chunk) for chunk in _passages(part)}
            copy_points(summarised, part, PASSAGES, points.values())
            part.results.settle(STAGE, _made_from(view, points))


async def _build(
    index: Index, embedder: Embedder, models: LanguageModels, shorten: Shorten, progress: Progress
) -> dict[str, float]:
    path = index.path / FOLDER
    before = index.results.calls(STAGE)
    summaries = await _summaries(index, models, shorten, progress)
    calls = index.results.calls(STAGE) - before

    settings = dataclasses.replace(models.settings, chunks=FOR_GRAPH, redact=index.manifest.settings.redact)
    report = await abuild_index(
        _summarised(index, summaries), path, settings=settings, models=models, embedder=embedder,
        kraq=GraphOnly(settings, embedder), progress=progress, replace=True,
    )  # fmt: skip
    with Index.open(path, write=True) as summarised:
        points = {chunk.id: chunk_point(chunk) for chunk in _passages(summarised)}
        store, encode = summarised.vectors_named(PASSAGES), embedder.encode_passages
        await asyncio.to_thread(sync_vectors, store, points.keys(), points.values(), encode, "embed passages", progress)
        entities = summarised.count(Entity)
        if entities:
            await asyncio.to_thread(entity_vectors, summarised, embedder, progress)
        summarised.results.settle(STAGE, _made_from(index, points))
    tokens = sum(count_tokens(document.text) for document in index.all(Document))
    left = sum(count_tokens(document.text) for document in _summarised(index, summaries))
    return {
        "documents": index.count(Document),
        "tokens_before": tokens,
        "tokens_after": left,
        "reduction": round(1 - left / max(1, tokens), 4),
        "passages": len(points),
        "entities": entities,
        "calls": calls + sum(usage.calls for usage in report.usage.values()),
        "failures": index.count(Document) - len(summaries),
    }


async def _summaries(index: Index, models: LanguageModels, shorten: Shorten, progress: Progress) -> dict[str, str]:
    """The summaries by document id, without those that failed."""
    index.results.prune(STAGE, index.ids(Document))
    steps = StoredSteps(index.results, models, progress)
    items = (Item(document.id, {"text": document.text}) for document in index.all(Document))
    summaries: dict[str, str] = {}
    async for done in steps.map(STAGE, "summarizer", shorten, items, total=index.count(Document)):
        summaries[done.id] = done.prediction.shortened
    progress.finish(STAGE)
    return summaries


def _summarised(index: Index, summaries: dict[str, str]) -> Iterator[Document]:
    for document in index.all(Document):
        yield dataclasses.replace(document, text=summaries.get(document.id, document.text))


def _passages(summarised: Index) -> Iterator[Chunk]:
    for document in summarised.all(Document):
        yield from chunk_document(document, FOR_VECTORS)


class GraphOnly(KRAQ):
    """The pipeline without its last stage: nobody asks for questions about K2RAG's graph."""

    async def questions(self, *args: Any, **kwargs: Any) -> AsyncIterator[Question]:
        return
        yield


def _made_from(index: Index, passage_ids: Iterable[str]) -> str:
    """Depends on the text of every chunk and of every passage of the summaries; their ids do."""
    return content_id(*sorted(index.ids(Chunk)), *sorted(passage_ids))
