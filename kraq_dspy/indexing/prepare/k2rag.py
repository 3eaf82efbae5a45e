"""Makes K2RAG's summarised corpus: every document in fewer words, its graph, and passages for hybrid retrieval.

`summarised_corpus.py` opens it again.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.asset.store.sync import chunk_point, sync_vectors
from kraq_dspy.asset.store.vectors.copying import copy_points
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.index.build import abuild_index
from kraq_dspy.indexing.prepare.graph import entity_vectors
from kraq_dspy.indexing.prepare.summarised import FOLDER, STAGE
from kraq_dspy.indexing.prepare.summarised_corpus import PASSAGES, made_from, passages_of, shortener
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress, SilentProgress
from kraq_dspy.programs.k2rag.shorten import Shorten
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import Document, Entity, Question
from kraq_dspy.settings import ChunkSettings
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import StoredSteps

FOR_GRAPH = ChunkSettings(tokens=300, overlap=100)


MakePart: TypeAlias = Callable[[Index, Path, type[KRAQ]], None]
"""Makes of another index the part with the same documents, as an index in a folder."""


def build_summarised(
    index: Index,
    embedder: Embedder,
    models: LanguageModels,
    *,
    shorten: Shorten | None = None,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Make the summarised corpus, as `kraq precompute DIR k2rag` does. The index must be open for writing.

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


def carry(whole: Index, view: Index, embedder: Embedder, make_part: MakePart) -> None:
    """Give a view the summaries of its documents: each was written of one document alone. Their graph is made again, by
    `make_part`."""
    path = whole.path / FOLDER
    if not (path / MANIFEST).exists():
        return
    with Index.open(path) as summarised:
        passages = [chunk.id for chunk in passages_of(summarised)]
        if summarised.results.settled(STAGE) != made_from(whole, passages):
            return  # of documents as they were
        make_part(summarised, view.path / FOLDER, GraphOnly)

        with Index.open(view.path / FOLDER, write=True) as part:
            points = {chunk.id: chunk_point(chunk) for chunk in passages_of(part)}
            copy_points(summarised, part, PASSAGES, points.values())
            part.results.settle(STAGE, made_from(view, points))


async def _build(
    index: Index, embedder: Embedder, models: LanguageModels, shorten: Shorten, progress: Progress
) -> dict[str, float]:
    path = index.path / FOLDER
    before = index.results.calls(STAGE)
    summaries = await _summaries(index, models, shorten, progress)
    calls = index.results.calls(STAGE) - before

    settings = dataclasses.replace(models.settings, chunks=FOR_GRAPH, redact=index.manifest.settings.redact)
    report = await abuild_index(
        _summarised(index, summaries), path, settings=settings, lm=models, embedder=embedder,
        kraq=GraphOnly(settings, embedder), progress=progress, replace=True,
    )  # fmt: skip
    with Index.open(path, write=True) as summarised:
        points = {chunk.id: chunk_point(chunk) for chunk in passages_of(summarised)}
        store, encode = summarised.vectors_named(PASSAGES), embedder.encode_passages
        await asyncio.to_thread(sync_vectors, store, points.keys(), points.values(), encode, "embed passages", progress)
        entities = summarised.count(Entity)
        if entities:
            await asyncio.to_thread(entity_vectors, summarised, embedder, progress)
        summarised.results.settle(STAGE, made_from(index, points))
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


class GraphOnly(KRAQ):
    """The pipeline without its last stage: nobody asks for questions about K2RAG's graph."""

    async def questions(self, *args: Any, **kwargs: Any) -> AsyncIterator[Question]:
        return
        yield
