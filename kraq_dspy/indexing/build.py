"""Builds an index: runs the offline stages over a corpus or an import, keeps every result, resumes where it stopped."""

import asyncio
import dataclasses
import logging
import shutil
import threading
import time
from collections.abc import AsyncIterable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar, Unpack

from kraq_dspy.catalogue.sources import flag_stale
from kraq_dspy.concurrency import run_coroutine
from kraq_dspy.config import Settings
from kraq_dspy.corpus.chunk import chunk_document
from kraq_dspy.corpus.redact import redacted_document
from kraq_dspy.embedders import load_embedder, resolve_encoder
from kraq_dspy.embedders.adapted import as_embedder
from kraq_dspy.errors import ConfigError, CorpusError
from kraq_dspy.graph.build import Graph
from kraq_dspy.graph.communities import drift, find_communities, prepare
from kraq_dspy.indexing.opening import documents_of, open_for_build, origin_of, require_documents, steps_for
from kraq_dspy.indexing.options import BuildOptions, require_known, spelled_out, with_lm
from kraq_dspy.indexing.report import BuildReport, DocumentChanges, usage_since
from kraq_dspy.lms.meter import Meter, prices_of
from kraq_dspy.lms.roles import LanguageModels, as_models
from kraq_dspy.notebook import default_progress
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.programs.kraq.duplicate_questions import mark_duplicates
from kraq_dspy.programs.kraq.pipeline import KRAQ, in_reading_order
from kraq_dspy.programs.state import load_state
from kraq_dspy.records import (
    Chunk,
    Claim,
    Community,
    Document,
    Entity,
    Extraction,
    Failure,
    Merge,
    Question,
    Relationship,
    Summary,
)
from kraq_dspy.steps.bounded import ItemStream, abatches
from kraq_dspy.stores.index import Index
from kraq_dspy.stores.passage_graph_file import keep_passage_graph
from kraq_dspy.stores.sync import Point, batches, chunk_point, sync_vectors

logger = logging.getLogger(__name__)

T = TypeVar("T")

DRIFT = 0.02  # lost modularity from which on communities should be found anew
HEAD_START = 1.0  # seconds that calls have before this process embeds: torch's import would hold them up
_BATCH = 256  # records written at once


@spelled_out
def build_index(
    corpus: str | Path | Iterable[Document],
    out: str | Path,
    *,
    stable: bool = False,
    replace: bool = False,
    **options: Unpack[BuildOptions],
) -> BuildReport:
    """`abuild_index` for code that is not asynchronous; takes the same arguments."""
    return run_coroutine(abuild_index(corpus, out, stable=stable, replace=replace, **options))


@spelled_out
async def abuild_index(
    corpus: str | Path | Iterable[Document],
    out: str | Path,
    *,
    stable: bool = False,
    replace: bool = False,
    **options: Unpack[BuildOptions],
) -> BuildReport:
    """Index a corpus (a file, a folder, or documents) into the folder `out`; `options` are those of `BuildOptions`.

    Where `out` is an index already, made with the same settings, the build brings it up to date with the corpus: what
    was done before is not done again, and documents that its corpus no longer has are removed. Another corpus than the
    one it was made from may add documents and change them, but takes the place of documents that it lacks only with
    `replace`. With `stable`, communities that are there stay as they are as far as they can (`find_communities`), which
    spares most calls after a small change; without it the index is what a new build would make.

    Raises BudgetExceededError at a limit: what was paid for is kept, and the same call goes on. Raises CorpusError when
    there is nothing to index, RemovedDocumentsError when documents would be lost, IndexStateError when `out` holds
    something else or was made with other settings, EncoderMismatchError when it was made with another encoder,
    ModelError when a model cannot be used.
    """
    new = not Path(out).exists()
    if not isinstance(corpus, str | Path) and not new:
        corpus = list(corpus)  # to be read twice
    settings = options.get("settings")
    documents = documents_of(corpus, settings)
    async with Builder.at(Path(out), options) as builder:
        try:
            builder.begin("corpus", corpus, documents_of(corpus, settings), replace=replace)
            builder.load(documents)
        except CorpusError:
            if new:  # nothing was indexed: leave nothing behind
                builder.index.close()
                shutil.rmtree(out)
            raise
        builder.stable = stable
        return await builder.build()


class Builder:
    """One build: the index that it writes, and what it works with. Use `at`, in an `async with` block."""

    def __init__(
        self,
        index: Index,
        settings: Settings,
        models: LanguageModels,
        embedder: Embedder,
        kraq: KRAQ,
        progress: Progress,
        *,
        random_questions: bool = False,
    ) -> None:
        self.index = index
        self.settings = settings
        self.embedder = embedder
        self.models = models
        self.kraq = kraq
        self.progress = progress
        self.random_questions = random_questions
        self.steps = steps_for(index, settings.run, models, progress)
        self.problems: list[str] = []
        self.stale_answers = 0
        self.stable = False  # whether communities that are there already are kept as far as they can be
        self._documents_before = set(index.ids(Document))
        self._changed = 0
        self._started = time.monotonic()
        self._usage_before = index.results.usage()

    @classmethod
    def at(cls, out: Path, options: BuildOptions) -> "Builder":
        """Raises TypeError for an option that there is not, or of a wrong kind."""
        require_known(options)
        settings = options.get("settings") or Settings()
        given, limits = options.get("models"), options.get("limits")
        kraq, states = options.get("kraq"), options.get("program_states", ())
        if states and kraq is not None:
            raise ConfigError("Load the program states into the program that you give: kraq.load(FILE).")
        if settings.run.runner == "ray":
            from kraq_dspy.steps.ray import require_ray

            require_ray()
        if settings.communities.algorithm != "leiden":
            from kraq_dspy.graph.other_algorithms import require_algorithm

            require_algorithm(settings.communities.algorithm)
        if (embedder_like := options.get("embedder")) is None:
            settings = dataclasses.replace(settings, encoder=resolve_encoder(settings.encoder))
            embedder = load_embedder(settings.encoder)
        else:
            embedder = as_embedder(embedder_like)
        if limits is not None:
            if isinstance(given, LanguageModels):
                raise ConfigError(
                    "Give the limits to the models that you bring: LanguageModels(..., meter=Meter(limits))."
                )
            limits = dataclasses.replace(limits, prices={**prices_of(settings), **limits.prices})
        models = as_models(with_lm(given, options.get("lm")), settings, embedder=embedder, meter=Meter(limits))
        kraq = kraq or KRAQ(settings, embedder)
        for state in states:
            load_state(kraq, Path(state), embedder=embedder)
        return cls(
            open_for_build(out, settings, embedder), settings, models, embedder, kraq,
            options.get("progress") or default_progress(), random_questions=options.get("random_questions", False),
        )  # fmt: skip

    async def __aenter__(self) -> "Builder":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.steps.close()
        await self.models.aclose()
        self.index.close()

    def begin(
        self,
        kind: str,
        corpus: str | Path | Iterable[Document],
        documents: Iterable[Document | Failure],
        *,
        replace: bool,
    ) -> None:
        """Note what the index is made from. Raises RemovedDocumentsError, before anything is changed, when another
        corpus than the index was made from lacks documents that it has, unless it is to `replace` them."""
        origin = origin_of(kind, corpus)
        same = "path" in origin and self.index.manifest.origin == origin
        if self._documents_before and not replace and not same:
            require_documents(self.index, self._redacted(documents))
        self.index.update_manifest(origin=origin, complete=False)

    async def build(self) -> BuildReport:
        """All stages over the documents that are loaded; only what is not there yet is asked of models."""
        extracting = asyncio.ensure_future(self.extract())

        async def compute() -> None:
            done, _ = await asyncio.wait([extracting], timeout=HEAD_START)
            for extracted in done:
                extracted.result()  # where that stopped, nothing else is begun
            await asyncio.gather(self.embed_chunks(), asyncio.to_thread(prepare))

        await asyncio.gather(extracting, compute())
        await self.finish()
        return self.report()

    def load(self, documents: Iterable[Document | Failure], *, beside: Collection[str] = ()) -> None:
        """Documents and their chunks as the corpus has them now; what it no longer has goes.

        Stored documents with the ids `beside` stay, unless `documents` has them in a new form.
        """
        self.progress.start("load", None)
        if not beside:
            self.index.results.prune("load", ())
        known_documents: set[str] = set()
        known_chunks: set[str] = set()
        for batch in batches(documents, _BATCH):
            kept = list(self._redacted(batch))
            chunks = [chunk for document in kept for chunk in chunk_document(document, self.settings.chunks)]
            self.index.add([item for item in batch if isinstance(item, Failure)])
            self._store(kept, chunks)
            known_documents.update(document.id for document in kept)
            known_chunks.update(chunk.id for chunk in chunks)
            self.progress.advance("load", len(kept))
        self.progress.finish("load")
        staying = set(beside) - known_documents
        if staying:
            known_chunks.update(chunk.id for chunk in self.index.all(Chunk) if chunk.document_id in staying)
        if not known_chunks:
            raise CorpusError("There is no text in the corpus: every document is empty or was refused.")
        self._forget_others(known_documents | staying, known_chunks)

    def _redacted(self, items: Iterable[Document | Failure]) -> Iterator[Document]:
        return (redacted_document(item, self.settings.redact) for item in items if isinstance(item, Document))

    def keep_documents(self, documents: Sequence[Document], chunks: Sequence[Chunk]) -> None:
        """The documents and chunks of an import; others go."""
        self._store(documents, chunks)
        self._forget_others({document.id for document in documents}, {chunk.id for chunk in chunks})

    def _store(self, documents: Sequence[Document], chunks: Sequence[Chunk]) -> None:
        known = [document.id for document in documents if document.id in self._documents_before]
        before = {document.id: document for document in self.index.get(Document, known)}
        self._changed += sum(document.id in before and before[document.id] != document for document in documents)
        self.index.add(documents)
        self.index.add(chunks)

    def _forget_others(self, document_ids: set[str], chunk_ids: set[str]) -> None:
        for kind, known in ((Document, document_ids), (Chunk, chunk_ids), (Extraction, chunk_ids)):
            self.index.delete(kind, set(self.index.ids(kind)) - known)
        self.index.results.prune("extract", chunk_ids)
        self.stale_answers += len(flag_stale(self.index))  # now: an interrupted run must not leave them served

    async def embed_chunks(self) -> None:
        """Vectors of all chunks; in a thread, while models are asked. When cancelled the thread ends with its batch."""
        points, encode = map(chunk_point, self.index.all(Chunk)), self.embedder.encode_passages
        store, ids, stop = self.index.chunk_vectors, self.index.ids(Chunk), threading.Event()
        sync = partial(sync_vectors, store, ids, points, encode, "embed", self.progress, is_stopped=stop.is_set)
        running = asyncio.ensure_future(asyncio.to_thread(sync))
        try:
            await asyncio.shield(running)
        finally:
            stop.set()
            await asyncio.wait([running])

    async def extract(self) -> None:
        with closing(self.index.all(Chunk)) as chunks:  # a run that stops early leaves no reader behind
            extractions = self.kraq.extractions(chunks, self.steps, total=self.index.count(Chunk))
            async for batch in abatches(extractions, _BATCH):
                self.index.add(batch)
        self.progress.finish("extract")

    async def finish(self) -> None:
        """From extractions to questions."""
        order = list(self.index.reading_order())
        self.progress.start("graph", None)
        graph = await self.kraq.graph(self.index.extractions(), self.steps)
        self.index.replace(Entity, graph.entities)
        self.index.replace(Relationship, graph.relationships)
        keep_passage_graph(self.index, graph.entities, graph.relationships)
        self.index.replace(Claim, graph.claims)
        self.index.replace(Merge, graph.merges)
        former = list(map(_members, self.index.all(Community))) if self.stable else []
        communities = find_communities(graph.entities, graph.relationships, self.settings.communities, order, former)
        if former:
            self._report_drift(communities, graph)
        self.index.replace(Community, communities)
        self.progress.finish("graph")
        summaries: ItemStream[Summary] = ItemStream()
        total = len(self.kraq.worth_a_summary(communities))
        with _first_of_group():
            async with asyncio.TaskGroup() as group:  # a question is asked as soon as its summary is there
                group.create_task(self._summarize(communities, graph, summaries))
                asking = group.create_task(self._ask(communities, summaries, total))
        await self._keep_asked(asking.result())

    def _report_drift(self, communities: Sequence[Community], graph: Graph) -> None:
        lost = drift(communities, graph.entities, graph.relationships, self.settings.communities)
        if lost > DRIFT:
            self.problems.append(
                f"The communities were kept through changes and fit the graph less than new ones would (modularity "
                f"-{lost:.3f}). When it suits, find them anew: kraq update {self.index.path} CORPUS --recluster"
            )

    async def _summarize(self, communities: Sequence[Community], graph: Graph, stream: ItemStream[Summary]) -> None:
        written: dict[str, Summary] = {}
        async for summary in self.kraq.summaries(communities, graph, self.steps):
            written[summary.community_id] = summary
            stream.put(summary)
        stream.close()
        self.index.replace(Summary, [written[c.id] for c in communities if c.id in written])
        self.index.results.prune("summarize", written)
        self.progress.finish("summarize")

    async def ask(self) -> None:
        """Questions of all summaries, with their vectors; then the index is complete."""
        summaries = list(self.index.all(Summary))
        questions = await self._ask(list(self.index.all(Community)), summaries, len(summaries))
        await self._keep_asked(questions)

    async def _ask(
        self, communities: Sequence[Community], summaries: Iterable[Summary] | AsyncIterable[Summary], total: int
    ) -> list[Question]:
        questions_made = self.kraq.questions(
            communities,
            summaries,
            self.index.reading_order(),
            self.steps,
            total=total,
            names=self.kraq.central_names(self.index.all(Entity)),
        )
        questions = in_reading_order([question async for question in questions_made], communities)
        self.progress.finish("ask")
        return questions

    async def _keep_asked(self, questions: list[Question]) -> None:
        self.index.results.prune("ask", set(self.index.ids(Summary)))
        if self.random_questions:
            chunks = list(self.index.all(Chunk))
            drawn = self.kraq.random_questions(chunks, len(questions), self.steps, seed=self.settings.communities.seed)
            questions += in_reading_order([question async for question in drawn], ())
        await asyncio.to_thread(self._keep_questions, questions)
        self.index.update_manifest(complete=True, settings=self.settings, models=self.models.names())

    def _keep_questions(self, questions: Sequence[Question]) -> None:
        points = (Point(q.id, q.query, {"level": q.level, "source": q.source}) for q in questions)
        store, encode = self.index.question_vectors, self.embedder.encode_queries
        sync_vectors(store, {question.id for question in questions}, points, encode, "embed questions", self.progress)
        self.index.replace(Question, self._marked(questions))

    def _marked(self, questions: Sequence[Question]) -> list[Question]:
        """Duplicates are looked for among questions of one source: random ones must not hide those of communities."""
        marked: list[Question] = []
        for source in dict.fromkeys(question.source for question in questions):
            alike = [question for question in questions if question.source == source]
            vectors = self.index.question_vectors.vectors([question.id for question in alike])
            marked += mark_duplicates(alike, vectors, self.settings.questions.duplicate_similarity)
        return marked

    def report(self) -> BuildReport:
        documents, before = set(self.index.ids(Document)), self._documents_before
        return BuildReport(
            path=self.index.path,
            counts=self.index.counts(),
            failures=tuple(self.index.results.failures()),
            usage=usage_since(self._usage_before, self.index.results.usage()),
            seconds=time.monotonic() - self._started,
            models=self.models.names(),
            problems=tuple(self.problems),
            stale_answers=self.stale_answers,
            documents=DocumentChanges(len(documents - before), self._changed, len(before - documents)),
        )


@contextmanager
def _first_of_group() -> Iterator[None]:
    """Raises the first exception of a task group as itself."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def _members(community: Community) -> Community:
    """All that is needed to follow a former community; the ids of relationships and chunks are most of its memory."""
    return dataclasses.replace(community, relationship_ids=(), chunk_ids=())
