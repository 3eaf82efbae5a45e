"""Builds an index: runs the offline stages over a corpus or an import, keeps every result, resumes where it stopped."""

import asyncio
import dataclasses
import logging
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.display import default_progress
from kraq_dspy._internal.step import instructions_of
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.formats.apart import end_reading
from kraq_dspy.asset.corpus.load import has_same_text, is_about_labels
from kraq_dspy.asset.graph.partition import require_engine
from kraq_dspy.asset.label_names import MENTIONED, possible_names
from kraq_dspy.asset.scope import NOBODY
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.manifest import Manifest
from kraq_dspy.asset.store.sync import Point, batches, chunk_point, sync_vectors
from kraq_dspy.embedded_model import analyst
from kraq_dspy.errors import ConfigError, CorpusError, counted
from kraq_dspy.indexing.faq.sources import flag_stale
from kraq_dspy.indexing.index import opening
from kraq_dspy.indexing.index.finishing import (
    FINISHED,
    BuildParts,
    Finishing,
    is_whole,
    note_communities,
    settle_finished,
    take_finished,
)
from kraq_dspy.indexing.index.following import Following
from kraq_dspy.indexing.index.forgetting import forget, forget_beside
from kraq_dspy.indexing.index.in_place import asked_in_place
from kraq_dspy.indexing.index.report import BuildOptions, BuildReport, DocumentChanges, LabelsOf, located, require_known
from kraq_dspy.language.analysis import READ
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.models.embedders.text_encoder import EmbedderLike, as_embedder
from kraq_dspy.models.lms.meter import Limits, Meter, prices_of
from kraq_dspy.models.lms.roles import LanguageModels, ModelsLike, as_models
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.programs.kraq.extract_graph import ExtractNames
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import Chunk, Document, Extraction, Failure, Usage, usage_by_stage
from kraq_dspy.settings import EMBEDDED, Settings
from kraq_dspy.state import load_state

logger = logging.getLogger(__name__)

VANISHING = 0.2  # share of an index's documents from which on a warning goes before their removal
HEAD_START = 1.0  # seconds that calls have before this process embeds: torch's import would hold them up
_BATCH = 256  # records written at once
_NO_TEXT = "There is no text in the corpus: every document is empty or was refused."


def build_index(
    corpus: str | Path | Iterable[Document | str],
    out: str | Path,
    *,
    settings: Settings | None = None,
    lm: ModelsLike | None = None,
    embedder: EmbedderLike | None = None,
    kraq: KRAQ | None = None,
    progress: Progress | None = None,
    optimized: Sequence[str | Path] = (),
    limits: Limits | None = None,
    labels: LabelsOf | None = None,
    random_questions: bool = False,
    stable: bool = False,
    replace: bool = False,
) -> BuildReport:
    """Index a corpus into the folder `out`: a graph, communities, and a summary and a question for each community.

    >>> build_index(["Ada Lovelace met Charles Babbage in London."], "new.kraq").counts["documents"]
    1
    >>> report = build_index("articles.jsonl", "articles.kraq", lm=dspy.LM("openai/gpt-4o-mini"))  # doctest: +SKIP

    Args:
        corpus: a file or folder (jsonl, csv, parquet, txt, md, html, pdf), or a list of `Document`s or of texts.
        out: the folder of the index, by custom NAME.kraq.
        settings: settings in place of kraq.toml; without them, the defaults.
        lm: the model that does all the work, or models by role: `{"extractor": lm}`, where "default" stands for the
            other roles. Without it, kraq takes the model of `dspy.context` or `dspy.configure`, then the model of the
            settings, then the embedded model.
        embedder: a `kraq_dspy.extend.Embedder` or `dspy.Embedder` in place of the encoder of the settings.
        kraq: the pipeline to run, such as an optimized one.
        progress: gets the progress of the build (`kraq_dspy.extend.Progress`). Without it, a notebook shows bars.
        optimized: files of `kraq optimize`; kraq reruns the steps that these files change.
        limits: most calls, tokens and cost of this run.
        labels: a function that gets a document and returns its labels (`Scope`). Without it, the documents' own
            labels count. Once one document has labels, the index answers only questions with a scope.
        random_questions: also write questions about random passages, as many as about communities.
        stable: keep existing communities as far as possible. After a small change, this saves most calls. Without it,
            the result equals that of a new build.
        replace: remove documents of the index that are not in the corpus.

    If `out` is already an index with the same settings, the build updates the index. The build repeats no finished
    work, and removes documents that are gone from the corpus. If the corpus is not the original one, the build
    removes documents only with `replace`.

    Returns:
        The counts of records, calls and seconds, and the failures.

    Raises:
        BudgetExceededError: at a limit; the index keeps what you paid for, and the same call resumes.
        CorpusError: if there is nothing to index.
        TypeError: if `corpus` is not a corpus.
        RemovedDocumentsError: if documents would be lost.
        IndexStateError: if `out` holds something else or has other settings.
        EncoderMismatchError: if the index has another encoder.
        ModelError: if a model does not work.
    """
    options: BuildOptions = {
        "settings": settings, "lm": lm, "embedder": embedder, "kraq": kraq, "progress": progress,
        "optimized": optimized, "limits": limits, "labels": labels, "random_questions": random_questions,
    }  # fmt: skip
    return run_coroutine(abuild_index(corpus, out, stable=stable, replace=replace, **options))


async def abuild_index(
    corpus: str | Path | Iterable[Document | str],
    out: str | Path,
    *,
    stable: bool = False,
    replace: bool = False,
    **options: Unpack[BuildOptions],
) -> BuildReport:
    """Run `build_index` in asynchronous code. The arguments are the same.

    Args:
        corpus: a file or folder, or a list of documents or texts.
        out: the folder of the index.
        stable: keep existing communities as far as possible.
        replace: remove documents of the index that are not in the corpus.
        **options: further arguments of `build_index`.

    Returns:
        The counts of records, calls and seconds, and the failures.
    """
    new = not Path(out).exists()
    if isinstance(corpus, Iterable) and not isinstance(corpus, str) and not new:
        corpus = list(corpus)  # to be read twice
    settings, labels = options.get("settings"), options.get("labels")

    def read() -> Iterable[Document | Failure]:
        return opening.documents_of(corpus, settings, labels=labels)

    documents = opening.read_to_the_first(read())
    async with Builder.at(Path(out), options, corpus) as builder:
        try:
            builder.begin(corpus, builder.as_before(read(), corpus), replace=replace)
            builder.load(builder.as_before(documents, corpus))
        except CorpusError:
            if new:  # nothing was indexed: leave nothing behind
                builder.index.close()
                shutil.rmtree(out)
            raise
        builder.stable = stable
        return await builder.build()


BY_FUNCTION = "function"
"""In an index's origin: a function that a caller gave, `labels=`, gave the documents their labels."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The state of reading a corpus: the ids of stored documents and chunks, and the failures."""

    document_ids: set[str] = field(default_factory=set)
    chunk_ids: set[str] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)


@dataclass(eq=False)
class Builder(BuildParts):
    """One build: the index that it writes, and what it works with. Use `at`, in an `async with` block."""

    owns_models: bool = True  # whether they are closed when the build ends
    stale_answers: int = 0
    labels_by_function: bool = False  # whether a caller in Python gave a function that labels documents
    was_finished: bool | None = None  # whether all was there before documents were loaded, as made now

    def __post_init__(self) -> None:
        self._documents_before = self.index.count(Document)
        self._changed = self._removed = 0
        self._possible_labels: dict[str, None] = {}  # names and files that may say who may read a document
        self._started = time.monotonic()
        self._usage_before = self.index.results.usage()
        self._failed_before = {(each.stage, each.item_id) for each in self.index.results.failures()}

    @classmethod
    def at(cls, out: Path, options: BuildOptions, corpus: object = None) -> "Builder":
        """The build of the index `out`; a new one is for those who may read the `corpus`, if that is a file or a
        folder. Raises TypeError for an option that there is not, or of a wrong kind."""
        require_known(options)
        _require_ray(options)
        recorded = _recorded(out)
        settings, embedder = _settings_and_embedder(recorded, options)
        require_engine(settings.communities)
        models = _models_of(options, settings, embedder)
        kraq = _pipeline_of(options, settings, embedder, models)

        index = opening.open_for_build(out, settings, embedder, corpus)
        index.own_store = settings.store
        own = settings.corpus
        has_labels = bool(options.get("labels") or own.acl_column or own.labels_file or own.labels == "required")
        if has_labels and not index.manifest.has_labels:
            index.update_manifest(has_labels=True)

        progress = options.get("progress") or default_progress()
        steps = opening.steps_for(index, settings.run, models, progress)
        random_questions = options.get("random_questions", False)
        return cls(
            index, settings, models, embedder, kraq, steps, progress, random_questions,
            owns_models=models is not options.get("lm"),
            labels_by_function=options.get("labels") is not None,
        )  # fmt: skip

    async def __aenter__(self) -> "Builder":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.steps.close()
        if self.owns_models:
            await self.models.aclose()
        self.index.close()

    def begin(
        self, corpus: object, documents: Iterable[Document | Failure], *, replace: bool, kind: str = "corpus"
    ) -> None:
        """Note what the index is made from. Raises RemovedDocumentsError, before anything is changed, when another
        corpus than the index was made from lacks documents that it has, unless it is to `replace` them."""
        origin = {"kind": "documents"}
        if isinstance(corpus, str | Path):  # `kraq index` goes on from it
            origin = {"kind": kind, "path": str(Path(corpus).resolve())}
        before = self.index.manifest.origin
        same = "path" in origin and all(before.get(key) == value for key, value in origin.items())
        if self._documents_before and not replace and not same:
            opening.require_documents(self.index, (item for item in documents if isinstance(item, Document)))
        if self.labels_by_function:
            origin["labels"] = BY_FUNCTION
        self.index.update_manifest(origin=origin, complete=False)

    async def build(self) -> BuildReport:
        """All stages over the documents that are loaded; only what is not there yet is asked of models."""
        extracting = asyncio.ensure_future(self.extract())

        async def compute() -> None:
            done, _ = await asyncio.wait([extracting], timeout=HEAD_START)
            for extracted in done:
                extracted.result()  # where that stopped, nothing else is begun
            await self.embed_chunks()

        await asyncio.gather(extracting, compute())
        await self.finish()
        self.problems += await asyncio.to_thread(forget_beside, self.index)
        return self.report()

    def load(self, documents: Iterable[Document | Failure]) -> None:
        """Documents and their chunks as the corpus has them now; what it no longer has goes, but for what could not be
        read: that stays as it was."""
        self.was_finished = take_finished(self)
        self.index.results.prune("load", ())
        loaded = self._store_all(documents)
        if not loaded.chunk_ids:
            raise CorpusError(_NO_TEXT)

        self._keep_to_owner(loaded)
        unread = opening.unread(self.index, loaded.document_ids, loaded.failures)
        chunks_of_unread = self.index.reading_order(unread).keys() if unread else set()
        gone = len(set(self.index.ids(Document)) - loaded.document_ids - unread)
        if gone > VANISHING * self._documents_before:
            had = counted(self._documents_before, "document")
            logger.warning("%d of the %s of the index are not in this corpus, and are removed", gone, had)
        self._forget_others(loaded.document_ids | unread, loaded.chunk_ids | chunks_of_unread)

    def load_change(self, documents: Iterable[Document | Failure], removed: Collection[str]) -> None:
        """The documents come beside the others, or in place of older forms; those that are `removed` go, no others."""
        self.was_finished = take_finished(self)
        loaded = self._store_all(documents)
        self._keep_to_owner(loaded)

        chunks_before = self.index.reading_order(loaded.document_ids | set(removed)).keys()
        gone = chunks_before - loaded.chunk_ids
        if self.index.count(Chunk) == len(gone):
            raise CorpusError(_NO_TEXT)
        self._forget(set(removed) - loaded.document_ids, gone)

    def _keep_to_owner(self, loaded: Loaded) -> None:
        """Documents that were read before, and whose labels are not understood now, are for nobody but the owner."""
        refused = [failure for failure in loaded.failures if is_about_labels(failure)]
        ids = opening.unread(self.index, loaded.document_ids, refused)
        nobodys = (dataclasses.replace(each, labels=(NOBODY,)) for each in self.index.get(Document, sorted(ids)))
        self._store(list(nobodys), ())

    def _store_all(self, documents: Iterable[Document | Failure]) -> Loaded:
        """Cut documents into chunks and store both, batch by batch; what could not be read is noted as a failure."""
        loaded, repeats = Loaded(), 0
        self.progress.start("load", None)
        for batch in batches(documents, _BATCH):
            read = [item for item in batch if isinstance(item, Document)]
            failures = [item for item in batch if isinstance(item, Failure) and not has_same_text(item)]
            repeats += len(batch) - len(read) - len(failures)
            chunks = [chunk for document in read for chunk in chunk_document(document, self.settings.chunks)]

            self.index.add(failures)
            self._store(read, chunks, loaded.document_ids)

            loaded.document_ids.update(document.id for document in read)
            loaded.chunk_ids.update(chunk.id for chunk in chunks)
            loaded.failures.extend(failures)
            self.progress.advance("load", len(read))
        self.progress.finish("load")
        end_reading()
        if repeats:
            self.problems.append(f"{counted(repeats, 'document')} left out, with the text of an earlier one.")
        return loaded

    def as_before(self, items: Iterable[Document | Failure], corpus: object = None) -> Iterator[Document | Failure]:
        """The items as they are stored, under the ids that they have in the index already."""
        return opening.as_before(items, self.index, corpus, self.settings.redact)

    def keep_documents(self, documents: Sequence[Document], chunks: Sequence[Chunk]) -> None:
        """The documents and chunks of an import; others go."""
        self.index.results.unsettle(FINISHED)  # the graph is not made of extracted documents
        self._store(documents, chunks)
        self._forget_others({document.id for document in documents}, {chunk.id for chunk in chunks})

    def _store(self, documents: Sequence[Document], chunks: Sequence[Chunk], so_far: Set[str] = frozenset()) -> None:
        """`so_far` are the documents that this build has stored before."""
        known = self.index.known(Document, [document.id for document in documents]) - so_far
        before = {document.id: document for document in self.index.get(Document, sorted(known))}
        changed = [document for document in documents if _differs(document, before.get(document.id, document))]
        other = [document.id for document in changed if not _differs_in_labels_alone(document, before[document.id])]
        forget(self.index, other, ())
        self._changed += len(changed)
        for document in documents:
            self._possible_labels.update(dict.fromkeys(map(repr, possible_names(map(str, document.metadata)))))
            if MENTIONED in document.left_out:
                self._possible_labels[f"{document.source!r} (the word 'acl')"] = None
        if any(document.labels for document in documents) and not self.index.manifest.has_labels:
            self.index.update_manifest(has_labels=True)
        self.index.add(documents)
        self.index.add(chunks)

    def _forget_others(self, document_ids: set[str], chunk_ids: set[str]) -> None:
        index = self.index
        index.delete(Extraction, set(index.ids(Extraction)) - chunk_ids)
        for stage in (READ, "extract"):
            index.results.prune(stage, chunk_ids)
        self._forget(set(index.ids(Document)) - document_ids, set(index.ids(Chunk)) - chunk_ids)

    def _forget(self, document_ids: Set[str], chunk_ids: Set[str]) -> None:
        self._removed += len(document_ids)
        self.index.note_removed(document_ids)
        forget(self.index, document_ids, chunk_ids)
        self.index.remove(document_ids, chunk_ids)
        self.stale_answers += len(flag_stale(self.index))  # now: an interrupted run must not leave them served

    async def embed_chunks(self) -> None:
        """Vectors of all chunks; in a thread, while models are asked. When cancelled the thread ends with its batch."""
        stop = threading.Event()
        running = asyncio.ensure_future(asyncio.to_thread(self._embed, stop.is_set))
        try:
            await asyncio.shield(running)
        finally:
            stop.set()
            await asyncio.wait([running])

    def _embed(self, is_stopped: Callable[[], bool]) -> None:
        store, results = self.index.chunk_vectors, self.index.results
        failed_before = self.index.known(Chunk, {failure.item_id for failure in results.failures("embed")})
        store.delete(failed_before)
        results.prune("embed", ())

        def left_out(chunk_id: str, reason: str) -> None:
            results.fail("embed", chunk_id, f"It has no vector and is found by its words alone: {reason}")

        ids, stored = self.index.ids(Chunk), store.ids()

        def absent_points() -> Iterator[Point]:
            for chunk_ids in batches((chunk_id for chunk_id in ids if chunk_id not in stored), _BATCH):
                yield from map(chunk_point, self.index.get(Chunk, chunk_ids))

        sync_vectors(
            store,
            ids,
            absent_points(),
            self.embedder.encode_passages,
            "embed",
            self.progress,
            is_stopped=is_stopped,
            left_out=left_out,
        )

    async def extract(self) -> None:
        """Extract from all chunks, or the new ones if all others were extracted by the same program and model."""
        analyst().forget_other_readings(self.index)
        stage = ("extract", "extractor", self.kraq.extract)
        is_settled = self.steps.is_settled("extract", stage)
        ids = self.index.ids(Chunk, without=Extraction if is_settled else None)
        if not is_settled:
            self.index.results.unsettle("extract")

        self.extracted.update(ids)
        with closing(self._chunks_to_extract(ids)) as chunks:
            await self._extract(chunks, len(ids))

        failed = {failure.item_id for failure in self.index.results.failures("extract")}
        if not self.index.known(Extraction, failed):  # what failed is new, and tried again, not being there
            self.steps.settle("extract", stage)
        self.progress.finish("extract")

    async def _extract(self, chunks: Iterable[Chunk], total: int) -> None:
        batch: list[Extraction] = []
        async for extraction in self.kraq.extractions(chunks, self.steps, total=total):
            batch.append(extraction)
            if len(batch) == _BATCH:
                self.index.add(batch)
                batch = []
        self.index.add(batch)

    def _chunks_to_extract(self, ids: Sequence[str]) -> Generator[Chunk]:
        """Yield the chunks; if what extracts goes by their parse, each when it is parsed."""
        by_parse = isinstance(self.kraq.extract, ExtractNames) and self.kraq.extract.parser
        if by_parse or self.steps.model("extractor", self.kraq.extract) == EMBEDDED:
            yield from analyst().read_passages(self.index, ids)
            return
        for some in batches(ids, _BATCH):
            yield from self.index.get(Chunk, some)

    async def finish(self) -> None:
        """Lead the build from extractions to questions; of a finished index that is as its corpus, nothing is made
        again."""
        stages = Following(self) if self.stable and self.was_finished else Finishing(self)
        if self._is_as_before() and is_whole(self):
            await stages.leave()
        else:
            await stages.finish()
            note_communities(self)
        if self.was_finished is not None:
            settle_finished(self)

    def _is_as_before(self) -> bool:
        """Whether an earlier build finished the index, and this one found nothing in its corpus to change."""
        added = self.index.count(Document) - self._documents_before + self._removed
        return bool(self.was_finished) and not (added or self._changed or self._removed or self.extracted)

    async def ask(self) -> None:
        """A question for each summary of an import; then the index is complete."""
        analyst().forget_other_readings(self.index)
        await Finishing(self).ask()

    def report(self) -> BuildReport:
        added = self.index.count(Document) - self._documents_before + self._removed

        open_failures = self.index.results.failures()
        new = [each for each in open_failures if (each.stage, each.item_id) not in self._failed_before]
        former = [each for each in open_failures if (each.stage, each.item_id) in self._failed_before]

        usage_now, usage_before = self.index.results.usage(), self._usage_before
        spent = usage_by_stage({key: usage - usage_before.get(key, Usage()) for key, usage in usage_now.items()})

        return BuildReport(
            path=self.index.path,
            counts=self.index.counts(),
            failures=located(self.index, [*new, *former]),
            former_failures=len(former),
            usage={stage: usage for stage, usage in spent.items() if usage.calls},
            seconds=time.monotonic() - self._started,
            models=self.models.names(),
            problems=(*self.problems, *self._of_labels(), *self._of_templates()),
            stale_answers=self.stale_answers,
            documents=DocumentChanges(added, self._changed, self._removed),
            asked_by=dict(Counter(question.model for question in self.index.questions(source="kraq"))),
        )

    def _of_templates(self) -> Iterator[str]:
        """What somebody should know who thinks that the generator asked."""
        if in_place := asked_in_place(self.index, instructions_of(self.kraq.ask)):
            yield str(in_place)

    def _of_labels(self) -> Iterator[str]:
        """What somebody should know who means to keep documents from others."""
        if not self.index.manifest.has_labels:
            if self._possible_labels:
                places = ", ".join(list(self._possible_labels)[:3])
                more = f" and {len(self._possible_labels) - 3} more" if len(self._possible_labels) > 3 else ""
                yield (
                    "No document has labels, so whoever asks the index reads all of it. These may say who may read a "
                    f"document: {places}{more}. If they do, declare labels: --acl-column NAME, front matter, or "
                    "--labels FILE."
                )
        elif not any(any(labels) for labels in self.index.labels().values()):
            column = self.settings.corpus.acl_column
            named = f" The column of labels is {column!r}; is that its name?" if column else ""
            yield f"No document names anybody who may read it, so only the owner (--owner) reads any.{named}"


def _differs(document: Document, before: Document) -> bool:
    """Whether more than the file that it comes from is another."""
    return dataclasses.replace(before, source=document.source) != document


def _differs_in_labels_alone(document: Document, before: Document) -> bool:
    return dataclasses.replace(document, labels=before.labels) == before


def _require_ray(options: BuildOptions) -> None:
    """Raises MissingExtraError before anything is opened, where the settings ask for a cluster."""
    settings = options.get("settings")
    if settings is not None and settings.run.runner == "ray":
        from kraq_dspy.steps.ray import require_ray

        require_ray()


def _recorded(out: Path) -> Manifest | None:
    """What an index that is there says of itself."""
    if not (out / "manifest.json").exists():
        return None
    with Index.open(out, unfinished=True) as index:
        return index.manifest


def _settings_and_embedder(recorded: Manifest | None, options: BuildOptions) -> tuple[Settings, Embedder]:
    """The settings name the encoder as it is; an encoder that is given stands in the place of theirs. An index that is
    there keeps its precision, unless the settings name another."""
    settings = options.get("settings") or Settings()
    given = options.get("embedder")
    if given is not None:
        return settings, as_embedder(given)

    made_by = recorded.encoder_name if recorded is not None and settings.encoder.precision == "auto" else ""
    settings = dataclasses.replace(settings, encoder=resolve_encoder(settings.encoder, made_by))
    return settings, load_embedder(settings.encoder)


def _models_of(options: BuildOptions, settings: Settings, embedder: Embedder) -> LanguageModels:
    """The models that are given, or those that the settings name, within the limits. Raises ConfigError for limits
    beside models that have a meter already."""
    given, limits = options.get("lm"), options.get("limits")
    if limits is not None:
        if isinstance(given, LanguageModels):
            raise ConfigError("Give the limits to the models that you pass: LanguageModels(..., meter=Meter(...)).")
        limits = dataclasses.replace(limits, prices={**prices_of(settings), **limits.prices})
    return as_models(given, settings, embedder=embedder, meter=Meter(limits))


def _pipeline_of(options: BuildOptions, settings: Settings, embedder: Embedder, models: LanguageModels) -> KRAQ:
    """The pipeline that is given, or one for models of this size, with the states of `kraq optimize`. Raises
    ConfigError for both."""
    given, states = options.get("kraq"), options.get("optimized", ())
    if given is not None:
        if states:
            raise ConfigError("Load the program states into the program that you give: kraq.load(FILE).")
        return given

    named = {
        role: dataclasses.replace(settings.role(role), model=models.name(role)) for role in ("extractor", "generator")
    }
    kraq = KRAQ(dataclasses.replace(settings, roles={**settings.roles, **named}), embedder)
    for state in states:
        load_state(kraq, Path(state))
    return kraq
