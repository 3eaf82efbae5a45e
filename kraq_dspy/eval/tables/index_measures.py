"""Makes rows about an index: its questions by level, what its stores cost, what a summarised corpus spares."""

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.vectors.local import LocalVectorStore
from kraq_dspy.build.index.build import build_index
from kraq_dspy.build.prepare.k2rag import FOR_GRAPH, FOR_VECTORS, GraphOnly, open_summarised
from kraq_dspy.build.prepare.preparations import SUMMARISED
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.rows import ResultRow, memory_mb
from kraq_dspy.eval.tables import systems
from kraq_dspy.eval.tables.run import Run
from kraq_dspy.eval.tables.table import System
from kraq_dspy.records import Document, Usage, content_id

CORPORA = ("whole", "summarised")


def measure(run: Run, folder: Path) -> None:
    """A row for each system, or, of a size reduction, one for each document."""
    chosen = run.table.systems_for(run.questions.dataset.name)
    for system in chosen:
        _check(system)
    index = run.index(run.settings)
    needs_summaries = any(system.use == "reduction" or system.options.get("corpus") == CORPORA[1] for system in chosen)
    seconds_of_summaries = 0.0
    if needs_summaries:
        models = run.models(run.settings)
        started = perf_counter()
        systems.prepare(
            index.path, [(SUMMARISED, SUMMARISED.options())], run.settings, run.embedder, models, run.progress
        )
        seconds_of_summaries = perf_counter() - started
    writer = run.writer(folder, index, {})
    with Index.open(index.path) as opened:
        corpora = {CORPORA[0]: list(opened.all(Document))}
        if needs_summaries:
            summarised = open_summarised(opened, run.embedder)
            corpora[CORPORA[1]] = list(summarised.index.all(Document))
            summarised.close()
        for system in chosen:
            run.progress.start(system.name, None)
            for row in _rows(run, system, opened, corpora, seconds_of_summaries):
                if (system.name, row.question_id) not in writer.done:
                    undefined = [metric for metric in run.table.metrics if metric not in row.metrics]
                    writer.write(dataclasses.replace(row, extra={**row.extra, "undefined": undefined}))
            run.progress.finish(system.name)


def _check(system: System) -> None:
    """Raises ConfigError, which names the system."""
    options = {"level": {"level"}, "reduction": set[str](), "store": {"store", "corpus"}, "summaries": set[str]()}
    if system.use not in options:
        raise ConfigError(f"{system.name!r}: measure is {system.use!r}; expected one of {', '.join(options)}.")
    if set(system.options) != options[system.use]:
        raise ConfigError(f"{system.name!r}: {system.use} takes {', '.join(options[system.use]) or 'no options'}.")
    if system.use == "store" and (
        system.options["corpus"] not in CORPORA or system.options["store"] not in ("dense", "sparse", "graph")
    ):
        raise ConfigError(f"{system.name!r}: a store is dense, sparse or graph, of the corpus {' or '.join(CORPORA)}.")


def _rows(
    run: Run, system: System, index: Index, corpora: dict[str, list[Document]], seconds_of_summaries: float
) -> Iterator[ResultRow]:
    name, dataset = system.name, run.questions.dataset.name
    if system.use == "level":
        level = system.options["level"]
        questions = index.questions(source="kraq", duplicates=True)
        count = sum(level in ("all", str(question.level)) for question in questions)
        yield ResultRow(dataset, name, metrics={"questions": float(count)})
    elif system.use == "reduction":
        short = {document.id: count_tokens(document.text) for document in corpora[CORPORA[1]]}
        for document in corpora[CORPORA[0]]:
            before = count_tokens(document.text)
            if before and document.id in short:
                yield ResultRow(
                    document.id, name, metrics={"size_reduction": max(0.0, 1 - short[document.id] / before)}
                )
    elif system.use == "summaries":
        usage = {"calls": index.results.calls("k2rag"), "prompt_tokens": 0, "completion_tokens": 0, **memory_mb()}
        yield ResultRow(dataset, name, metrics={"seconds": seconds_of_summaries}, extra={"usage": usage})
    else:
        make = {"dense": _encode, "sparse": _store_words, "graph": _build_graph}[system.options["store"]]
        documents = corpora[system.options["corpus"]]
        seconds, taken = make(run, documents)
        spent = {**dataclasses.asdict(taken), **memory_mb()}
        size = sum(count_tokens(document.text) for document in documents)
        yield ResultRow(dataset, name, metrics={"seconds": seconds, "tokens": float(size)}, extra={"usage": spent})


def _timed(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def _texts(documents: Sequence[Document]) -> list[str]:
    return [chunk.passage for document in documents for chunk in chunk_document(document, FOR_VECTORS)]


def _encode(run: Run, documents: Sequence[Document]) -> tuple[float, Usage]:
    """The dense store: its passages' vectors."""
    texts = _texts(documents)
    return _timed(lambda: run.embedder.encode_passages(texts)), Usage()


def _store_words(run: Run, documents: Sequence[Document]) -> tuple[float, Usage]:
    """The sparse store: word weights, written with vectors that are there already."""
    texts = _texts(documents)
    vectors = run.embedder.encode_passages(texts)
    with tempfile.TemporaryDirectory() as place:
        store = LocalVectorStore(Path(place) / "words", run.embedder.dimension)
        try:
            return _timed(
                lambda: store.upsert([content_id(text, str(row)) for row, text in enumerate(texts)], vectors, texts)
            ), Usage()
        finally:
            store.close()


def _build_graph(run: Run, documents: Sequence[Document]) -> tuple[float, Usage]:
    """The graph with its reports, from nothing: models are asked anew."""
    settings = dataclasses.replace(run.settings, chunks=FOR_GRAPH)
    models = run.models(settings)
    with tempfile.TemporaryDirectory() as place:
        report = build_index(
            documents, Path(place) / "graph.kraq", settings=settings, models=models, embedder=run.embedder,
            kraq=GraphOnly(settings, run.embedder), progress=run.progress,
        )  # fmt: skip
    return report.seconds, sum(report.usage.values(), Usage())
