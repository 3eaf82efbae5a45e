"""Times the stores that K2RAG needs, of a whole corpus and of the summarised one.

These are table 1 and figures 11 and 12 of the K2RAG paper (section 4). Each store is made anew and timed, so models are
asked about both corpora.
"""

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from kraq_dspy._internal.concurrency import run_all
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.asset.store.vectors.local import LocalVectorStore
from kraq_dspy.errors import CorpusError
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.indexing.prepare.k2rag import FOR_GRAPH, GraphOnly
from kraq_dspy.indexing.prepare.summarised_corpus import FOR_VECTORS, shortener
from kraq_dspy.models.lms.roles import LanguageModels, fill_in
from kraq_dspy.ports import Embedder, Progress, SilentProgress
from kraq_dspy.records import Document, content_id

QUARTILES = (0, 25, 50, 75, 100)
"""Percentiles of the sizes spared: what a boxplot shows (figure 11)."""


@dataclass(frozen=True, slots=True)
class StoreTimes:
    """Seconds to make each store of a corpus of so many `tokens`: vectors, words, and the graph with its reports."""

    tokens: int
    dense: float
    sparse: float
    graph: float


@dataclass(frozen=True, slots=True)
class StoresReport:
    """What summarising a corpus first costs and spares.

    `saved` is the share of each store's seconds that the summarised corpus spares, by the store's name; `reductions`
    are the percentiles `QUARTILES` of the share by which documents became smaller, and `mean_reduction` its mean.
    """

    documents: int
    summarising: float
    whole: StoreTimes
    summarised: StoreTimes
    saved: dict[str, float]
    reductions: tuple[float, ...]
    mean_reduction: float


def measure_stores(
    documents: Sequence[Document], models: LanguageModels, embedder: Embedder, progress: Progress | None = None
) -> StoresReport:
    """Makes dense, sparse and graph stores of the documents and of their summaries, and times each.

    The summaries are those of the section [k2rag], by its summariser or by the model of the role "summarizer". Raises
    CorpusError without a document that has text.
    """
    documents = [document for document in documents if document.text.strip()]
    if not documents:
        raise CorpusError("There is no document with text, so no store can be made.")

    progress = progress or SilentProgress()
    started = perf_counter()
    shortened = _summaries(documents, models, progress)
    summarising = perf_counter() - started

    whole = _times(documents, models, embedder, progress)
    summarised = _times(shortened, models, embedder, progress)
    reductions = [
        max(0.0, 1 - count_tokens(after.text) / count_tokens(before.text))
        for before, after in zip(documents, shortened, strict=True)
    ]
    return StoresReport(
        documents=len(documents),
        summarising=summarising,
        whole=whole,
        summarised=summarised,
        saved={
            name: 1 - getattr(summarised, name) / before if (before := getattr(whole, name)) else 0.0
            for name in ("dense", "sparse", "graph")
        },
        reductions=tuple(float(value) for value in np.percentile(reductions, QUARTILES)),
        mean_reduction=float(np.mean(reductions)),
    )


def _summaries(documents: Sequence[Document], models: LanguageModels, progress: Progress) -> list[Document]:
    shorten = shortener(models.settings.k2rag)
    fill_in(shorten, models, "summarizer")
    progress.start("summaries", len(documents))

    def shortened(document: Document) -> Document:
        text = str(shorten(text=document.text).shortened)
        progress.advance("summaries")
        return dataclasses.replace(document, text=text)

    summaries = run_all(shortened, documents, limit=models.settings.run.concurrency)
    progress.finish("summaries")
    return list(summaries)


def _times(documents: Sequence[Document], models: LanguageModels, embedder: Embedder, progress: Progress) -> StoreTimes:
    passages = [chunk.passage for document in documents for chunk in chunk_document(document, FOR_VECTORS)]
    vectors = embedder.encode_passages(passages[:1])  # the encoder's weights are loaded before anything is timed
    dense = _seconds(lambda: embedder.encode_passages(passages))

    vectors = np.repeat(vectors, len(passages), axis=0)  # the words are what is timed
    with tempfile.TemporaryDirectory() as folder:
        store = LocalVectorStore(Path(folder) / "words", embedder.dimension)
        ids = [content_id(text, str(place)) for place, text in enumerate(passages)]
        try:
            sparse = _seconds(lambda: store.upsert(ids, vectors, passages))
        finally:
            store.close()

    settings = dataclasses.replace(models.settings, chunks=FOR_GRAPH)
    with tempfile.TemporaryDirectory() as folder:
        graph = _seconds(
            lambda: build_index(
                documents,
                Path(folder) / "graph.kraq",
                settings=settings,
                lm=models,
                embedder=embedder,
                kraq=GraphOnly(settings, embedder),
                progress=progress,
            )
        )
    tokens = sum(count_tokens(document.text) for document in documents)
    return StoreTimes(tokens, dense, sparse, graph)


def _seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started
