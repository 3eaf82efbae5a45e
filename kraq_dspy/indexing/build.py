"""Builds an index: runs the offline stages over a corpus or an import, keeps every result, resumes where it stopped."""

import asyncio
import dataclasses
import itertools
import logging
import shutil
import time
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kraq_dspy.catalogue.sources import flag_stale
from kraq_dspy.config import Settings
from kraq_dspy.corpus.chunk import chunk_document
from kraq_dspy.corpus.load import load_documents
from kraq_dspy.corpus.redact import redacted_document
from kraq_dspy.embedders import load_embedder, resolve_encoder
from kraq_dspy.errors import ConfigError, CorpusError, IndexStateError
from kraq_dspy.graph.build import Graph
from kraq_dspy.graph.communities import drift, find_communities, prepare
from kraq_dspy.lms.meter import Limits, Meter, prices_of
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress, SilentProgress
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
    Usage,
)
from kraq_dspy.steps.bounded import ItemStream
from kraq_dspy.steps.stored import StoredSteps
from kraq_dspy.stores.index import Index

logger = logging.getLogger(__name__)

T = TypeVar("T")

DRIFT = 0.02  # lost modularity from which on communities should be found anew
_BATCH = 256  # records written, or texts embedded, at once


@dataclass(frozen=True)
class BuildReport:
    """What a build did. `usage` is what this run asked of models, by stage; `failures` are open ones, to be retried."""

    path: Path
    counts: dict[str, int]
    failures: tuple[Failure, ...]
    usage: dict[str, Usage]
    seconds: float
    models: dict[str, str]
    problems: tuple[str, ...] = ()
    stale_answers: int = 0  # of the catalogue, whose documents this run changed or removed


def build_index(corpus: str | Path | Iterable[Document], out: str | Path, **options: Any) -> BuildReport:
    """`abuild_index` for code that is not asynchronous; takes the same arguments."""
    return asyncio.run(abuild_index(corpus, out, **options))


async def abuild_index(
    corpus: str | Path | Iterable[Document],
    out: str | Path,
    *,
    settings: Settings | None = None,
    models: LanguageModels | None = None,
    embedder: Embedder | None = None,
    kraq: KRAQ | None = None,
    progress: Progress | None = None,
    random_questions: bool = False,
    program_states: Sequence[str | Path] = (),
    limits: Limits | None = None,
    stable: bool = False,
) -> BuildReport:
    """Index a corpus (a file, a folder, or documents) into the folder `out`.

    Where `out` is an index already, made with the same settings, the build brings it up to date with the corpus: what
    was done before is not done again. With `random_questions` it also makes as many questions from random chunks as
    there are communities with a question: the papers' baseline. `program_states` are files of `kraq optimize` for the
    steps of the pipeline; what they change is asked anew. `limits` bound what this run may ask of models. With
    `stable`, communities that are there stay as they are as far as they can (`find_communities`), which spares most
    calls after a small change; without it the index is what a new build would make.

    Raises BudgetExceededError at a limit: what was paid for is kept, and the same call goes on. Raises CorpusError when
    there is nothing to index, IndexStateError when `out` holds something else or was made with other settings,
    EncoderMismatchError when it was made with another encoder, ModelError when a model cannot be used.
    """
    if program_states and kraq is not None:
        raise ConfigError("Load the program states into the program that you give: kraq.load(FILE).")
    documents = _documents(corpus)
    new = not Path(out).exists()
    async with Builder.at(Path(out), settings, models, embedder, kraq, progress, program_states, limits) as builder:
        builder.index.update_manifest(origin=_origin("corpus", corpus))
        try:
            builder.load(documents)
        except CorpusError:
            if new:  # nothing was indexed: leave nothing behind
                builder.index.close()
                shutil.rmtree(out)
            raise
        builder.stable = stable
        return await builder.build(random_questions=random_questions)


def import_graphrag(folder: str | Path, out: str | Path, **options: Any) -> BuildReport:
    """`aimport_graphrag` for code that is not asynchronous; takes the same arguments."""
    return asyncio.run(aimport_graphrag(folder, out, **options))


async def aimport_graphrag(folder: str | Path, out: str | Path, **options: Any) -> BuildReport:
    """An index from the output folder of Microsoft GraphRAG: its reports become summaries, and those become questions.

    Takes the options of `abuild_index`. Raises ExchangeError for tables or columns that are missing.
    """
    from kraq_dspy.graph.exchange.graphrag_in import read_graphrag  # brings pyarrow

    imported = read_graphrag(Path(folder))
    builder = Builder.at(Path(out), **_builder_options(options))
    async with builder:
        index = builder.index
        index.update_manifest(origin=_origin("graphrag", folder))
        builder.problems.extend(imported.problems)
        builder.keep_documents(imported.documents, imported.chunks)
        index.replace(Entity, imported.entities)
        index.replace(Relationship, imported.relationships)
        index.replace(Claim, imported.claims)
        index.replace(Community, imported.communities)
        index.replace(Summary, imported.summaries)
        await builder.embed_chunks()
        await builder.ask(random_questions=options.get("random_questions", False))
        return builder.report()


def import_triples(path: str | Path, out: str | Path, **options: Any) -> BuildReport:
    """`aimport_triples` for code that is not asynchronous; takes the same arguments."""
    return asyncio.run(aimport_triples(path, out, **options))


async def aimport_triples(path: str | Path, out: str | Path, **options: Any) -> BuildReport:
    """An index from passages whose triples were extracted elsewhere; summaries and questions are made here.

    Takes the options of `abuild_index`. Raises ExchangeError for columns that are missing.
    """
    from kraq_dspy.graph.exchange.triples_in import read_triples  # brings pyarrow

    imported = read_triples(Path(path))
    builder = Builder.at(Path(out), **_builder_options(options))
    async with builder:
        index = builder.index
        index.update_manifest(origin=_origin("triples", path))
        builder.problems.extend(imported.problems)
        builder.keep_documents(imported.documents, imported.chunks)
        index.replace(Extraction, imported.extractions)
        await builder.embed_chunks()
        await builder.finish(random_questions=options.get("random_questions", False))
        return builder.report()


def _documents(corpus: str | Path | Iterable[Document]) -> Iterable[Document | Failure]:
    return load_documents(Path(corpus)) if isinstance(corpus, str | Path) else corpus


def _origin(kind: str, corpus: str | Path | Iterable[Document]) -> dict[str, str]:
    """What `kraq resume` goes on from."""
    if not isinstance(corpus, str | Path):
        return {"kind": "documents"}
    return {"kind": kind, "path": str(Path(corpus).resolve())}


def _builder_options(options: dict[str, Any]) -> dict[str, Any]:
    known = {"settings", "models", "embedder", "kraq", "progress", "limits"}
    if unknown := set(options) - known - {"random_questions"}:
        raise TypeError(f"Unknown options {sorted(unknown)}; known: {sorted(known | {'random_questions'})}.")
    return {name: options.get(name) for name in known}


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
    ) -> None:
        self.index = index
        self.settings = settings
        self.embedder = embedder
        self.models = models
        self.kraq = kraq
        self.progress = progress
        self.steps = _steps(index, settings, models, progress)
        self.problems: list[str] = []
        self.stale_answers = 0
        self.stable = False  # whether communities that are there already are kept as far as they can be
        self._started = time.monotonic()
        self._usage_before = index.results.usage()

    @classmethod
    def at(
        cls,
        out: Path,
        settings: Settings | None,
        models: LanguageModels | None,
        embedder: Embedder | None,
        kraq: KRAQ | None,
        progress: Progress | None,
        program_states: Sequence[str | Path] = (),
        limits: Limits | None = None,
    ) -> "Builder":
        settings = settings or Settings()
        if settings.run.runner == "ray":
            from kraq_dspy.steps.ray import require_ray

            require_ray()
        if embedder is None:
            settings = dataclasses.replace(settings, encoder=resolve_encoder(settings.encoder))
            embedder = load_embedder(settings.encoder)
        if limits is not None:
            if models is not None:
                raise ConfigError(
                    "Give the limits to the models that you bring: LanguageModels(..., meter=Meter(limits))."
                )
            limits = dataclasses.replace(limits, prices={**prices_of(settings), **limits.prices})
        models = models or LanguageModels(settings, embedder=embedder, meter=Meter(limits))
        kraq = kraq or KRAQ(settings, embedder)
        for state in program_states:
            load_state(kraq, Path(state), embedder=embedder)
        return cls(_opened(out, settings, embedder), settings, models, embedder, kraq, progress or SilentProgress())

    async def __aenter__(self) -> "Builder":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.steps.close()
        await self.models.aclose()
        self.index.close()

    async def build(self, *, random_questions: bool) -> BuildReport:
        """All stages over the documents that are loaded; only what is not there yet is asked of models."""
        await asyncio.gather(self.embed_chunks(), self.extract(), asyncio.to_thread(prepare))
        await self.finish(random_questions=random_questions)
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
        for batch in _batches(documents):
            kept = [redacted_document(d, self.settings.redact) for d in batch if isinstance(d, Document)]
            chunks = [chunk for document in kept for chunk in chunk_document(document, self.settings.chunks)]
            self.index.add([item for item in batch if isinstance(item, Failure)])
            self.index.add(kept)
            self.index.add(chunks)
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

    def keep_documents(self, documents: Sequence[Document], chunks: Sequence[Chunk]) -> None:
        """The documents and chunks of an import; others go."""
        self.index.add(documents)
        self.index.add(chunks)
        self._forget_others({document.id for document in documents}, {chunk.id for chunk in chunks})

    def _forget_others(self, document_ids: set[str], chunk_ids: set[str]) -> None:
        for kind, known in ((Document, document_ids), (Chunk, chunk_ids), (Extraction, chunk_ids)):
            self.index.delete(kind, set(self.index.ids(kind)) - known)
        self.index.results.prune("extract", chunk_ids)
        self.stale_answers += len(flag_stale(self.index))  # now: an interrupted run must not leave them served

    async def embed_chunks(self) -> None:
        """Vectors of all chunks; runs in a thread, so that it can go on while models are asked."""
        await asyncio.to_thread(self._embed_chunks)

    def _embed_chunks(self) -> None:
        store = self.index.chunk_vectors
        have = store.ids()
        wanted = set(self.index.ids(Chunk))
        store.delete(have - wanted)
        self.progress.start("embed", len(wanted))
        self.progress.advance("embed", len(have & wanted))
        missing = (chunk for chunk in self.index.all(Chunk) if chunk.id not in have)
        for batch in _batches(missing):
            passages = [chunk.passage for chunk in batch]
            payloads = [{**chunk.metadata, "document_id": chunk.document_id} for chunk in batch]
            store.upsert([chunk.id for chunk in batch], self.embedder.encode_passages(passages), passages, payloads)
            self.progress.advance("embed", len(batch))
        self.progress.finish("embed")

    async def extract(self) -> None:
        with closing(self.index.all(Chunk)) as chunks:  # a run that stops early leaves no reader behind
            found = self.kraq.extractions(chunks, self.steps, total=self.index.count(Chunk))
            async for batch in _abatches(found):
                self.index.add(batch)
        self.progress.finish("extract")

    async def finish(self, *, random_questions: bool) -> None:
        """From extractions to questions."""
        order = list(self._document_of())
        self.progress.start("graph", None)
        graph = await self.kraq.graph(self._extractions(order), self.steps)
        self.index.replace(Entity, graph.entities)
        self.index.replace(Relationship, graph.relationships)
        self.index.replace(Claim, graph.claims)
        self.index.replace(Merge, graph.merges)
        former = list(map(_members, self.index.all(Community))) if self.stable else []
        communities = find_communities(
            graph.entities, graph.relationships, self.settings.communities, chunk_order=order, former=former
        )
        if former:
            self._report_drift(communities, graph)
        self.index.replace(Community, communities)
        self.progress.finish("graph")
        summaries: ItemStream[Summary] = ItemStream()
        total = len(self.kraq.worth_a_summary(communities))
        with _first_of_group():
            async with asyncio.TaskGroup() as group:  # a question is asked as soon as its summary is there
                group.create_task(self._summarize(communities, graph, summaries))
                asked = group.create_task(self._ask(communities, summaries, total))
        await self._keep_asked(asked.result(), random_questions=random_questions)

    def _report_drift(self, communities: Sequence[Community], graph: Graph) -> None:
        lost = drift(communities, graph.entities, graph.relationships, self.settings.communities)
        if lost > DRIFT:
            self.problems.append(
                f"The communities were kept through changes and fit the graph less than new ones would (modularity "
                f"-{lost:.3f}). When it suits, find them anew: kraq update {self.index.path} CORPUS --recluster"
            )

    def _document_of(self) -> dict[str, str]:
        """Document ids by chunk ids, in reading order: by document id, then position, however the chunks came in."""
        places = sorted((chunk.document_id, chunk.position, chunk.id) for chunk in self.index.all(Chunk))
        return {chunk_id: document_id for document_id, _, chunk_id in places}

    def _extractions(self, order: Sequence[str]) -> Iterator[Extraction]:
        """In reading order, so that the graph does not depend on which answer came first."""
        have = set(self.index.ids(Extraction))
        for ids in _batches(chunk_id for chunk_id in order if chunk_id in have):
            yield from self.index.get(Extraction, ids)

    async def _summarize(self, communities: Sequence[Community], graph: Graph, stream: ItemStream[Summary]) -> None:
        written: dict[str, Summary] = {}
        async for summary in self.kraq.summaries(communities, graph, self.steps):
            written[summary.community_id] = summary
            stream.put(summary)
        stream.close()
        self.index.replace(Summary, [written[c.id] for c in communities if c.id in written])
        self.index.results.prune("summarize", written)
        self.progress.finish("summarize")

    async def ask(self, *, random_questions: bool) -> None:
        """Questions of all summaries, with their vectors; then the index is complete."""
        summaries = list(self.index.all(Summary))
        questions = await self._ask(list(self.index.all(Community)), summaries, len(summaries))
        await self._keep_asked(questions, random_questions=random_questions)

    async def _ask(
        self, communities: Sequence[Community], summaries: Iterable[Summary] | AsyncIterable[Summary], total: int
    ) -> list[Question]:
        asked = self.kraq.questions(communities, summaries, self._document_of(), self.steps, total=total)
        questions = in_reading_order([question async for question in asked], communities)
        self.progress.finish("ask")
        return questions

    async def _keep_asked(self, questions: list[Question], *, random_questions: bool) -> None:
        self.index.results.prune("ask", set(self.index.ids(Summary)))
        if random_questions:
            chunks = list(self.index.all(Chunk))
            drawn = self.kraq.random_questions(chunks, len(questions), self.steps, seed=self.settings.communities.seed)
            questions += in_reading_order([question async for question in drawn], ())
        await asyncio.to_thread(self._keep_questions, questions)
        self.index.update_manifest(complete=True, settings=self.settings, models=self.models.names())

    def _keep_questions(self, questions: Sequence[Question]) -> None:
        store = self.index.question_vectors
        stale = store.ids() - {question.id for question in questions}
        store.delete(stale)
        have = store.ids()
        missing = [question for question in questions if question.id not in have]
        self.progress.start("embed questions", len(questions))
        self.progress.advance("embed questions", len(questions) - len(missing))
        for batch in _batches(missing):
            texts = [question.text for question in batch]
            payloads = [{"level": question.level, "source": question.source} for question in batch]
            store.upsert([question.id for question in batch], self.embedder.encode_queries(texts), texts, payloads)
            self.progress.advance("embed questions", len(batch))
        self.index.replace(Question, self._marked(questions))
        self.progress.finish("embed questions")

    def _marked(self, questions: Sequence[Question]) -> list[Question]:
        """Duplicates are looked for among questions of one source: random ones must not hide those of communities."""
        marked: list[Question] = []
        for source in dict.fromkeys(question.source for question in questions):
            alike = [question for question in questions if question.source == source]
            vectors = self.index.question_vectors.vectors([question.id for question in alike])
            marked += mark_duplicates(alike, vectors, self.settings.questions.duplicate_similarity)
        return marked

    def report(self) -> BuildReport:
        used: dict[str, Usage] = {}
        for (stage, model), usage in self.index.results.usage().items():
            before = self._usage_before.get((stage, model), Usage())
            spent = Usage(*(now - then for now, then in zip(_counts(usage), _counts(before), strict=True)))
            if spent.calls:
                used[stage] = used.get(stage, Usage()) + spent
        return BuildReport(
            path=self.index.path,
            counts=self.index.counts(),
            failures=tuple(self.index.results.failures()),
            usage=used,
            seconds=time.monotonic() - self._started,
            models=self.models.names(),
            problems=tuple(self.problems),
            stale_answers=self.stale_answers,
        )


@contextmanager
def _first_of_group() -> Iterator[None]:
    """Raises the first exception of a task group as itself."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def _steps(index: Index, settings: Settings, models: LanguageModels, progress: Progress) -> StoredSteps:
    """Works in this process, or on a cluster."""
    run = settings.run
    if run.runner == "local":
        return StoredSteps(index.results, models, progress, run.concurrency)
    from kraq_dspy.steps.ray import RaySteps  # brings pyarrow and ray

    return RaySteps(index.results, models, progress, run.concurrency, run.ray_address)


def _opened(out: Path, settings: Settings, embedder: Embedder) -> Index:
    """The index at `out`, new or to be brought up to date, marked as incomplete."""
    if not (out / "manifest.json").exists():
        return Index.create(out, settings, encoder_name=embedder.name, encoder_dimension=embedder.dimension)
    index = Index.open(out, write=True)
    try:
        index.require_encoder(embedder)
        _require_redaction(index, settings)
    except IndexStateError:
        index.close()
        raise
    index.update_manifest(complete=False)
    return index


def _require_redaction(index: Index, settings: Settings) -> None:
    """What was struck out must not come back because a word was left out of a command."""
    before, now = index.manifest.settings.redact, settings.redact
    if any(getattr(before, kind) and not getattr(now, kind) for kind in ("emails", "phones", "cards")):
        raise IndexStateError(
            f"{str(index.path)!r} was made with personal data struck out, and this run would bring it back. Say "
            "--redact again ([redact] in kraq.toml), or choose another folder."
        )


def _members(community: Community) -> Community:
    """All that is needed to follow a former community; the ids of relationships and chunks are most of its memory."""
    return dataclasses.replace(community, relationship_ids=(), chunk_ids=())


def _counts(usage: Usage) -> tuple[int, int, int]:
    return usage.calls, usage.prompt_tokens, usage.completion_tokens


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    source = iter(items)
    while batch := list(itertools.islice(source, _BATCH)):
        yield batch


async def _abatches(items: AsyncIterator[T]) -> AsyncIterator[list[T]]:
    batch: list[T] = []
    async for item in items:
        batch.append(item)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
