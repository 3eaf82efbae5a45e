"""Opens the asset on disk, a folder `NAME.kraq/` of states that never change (`store/states.py`). In each state:

manifest.json   what it is: schema version, settings, encoder, models
index.db        SQLite: every record, and the results of language-model calls
passages.graph  passages and the entities that they name, in arrays
mentions.arrays what the extractions say, so that a change reads only those that are new
threshold.json      below which score a question is not answered here
sums.json       what these files are, to know one that is damaged
vectors/        `chunks`, `questions` and others, unless a Qdrant server keeps them

`StoredRecords` reads the records; here are the files, the vectors, and every change.
"""

import dataclasses
import logging
import threading
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.recent import Recent
from kraq_dspy.asset import consent
from kraq_dspy.asset.graph.mentions import Mentions
from kraq_dspy.asset.graph.mentions_file import read_mentions, save_mentions
from kraq_dspy.asset.graph.passage_graph import PassageGraph, passage_graph
from kraq_dspy.asset.store import access, manifest as manifests, states, tables
from kraq_dspy.asset.store.codec import restored
from kraq_dspy.asset.store.database import Database
from kraq_dspy.asset.store.manifest import Manifest
from kraq_dspy.asset.store.own_files import FileLock, damaged_files, require_own
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.asset.store.states import Lease
from kraq_dspy.asset.store.stored_records import StoredRecords
from kraq_dspy.asset.store.tables import table_of
from kraq_dspy.asset.store.vectors import LocalVectorStore, QdrantVectorStore
from kraq_dspy.asset.store.vectors.local import FRESH
from kraq_dspy.errors import EncoderMismatchError, IndexStateError, ScopeError
from kraq_dspy.ports import Embedder, VectorStore
from kraq_dspy.records import PHRASE, Chunk, Document, Entity, Extraction, Question, Record, Relationship, content_id
from kraq_dspy.settings import Settings, StoreSettings

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Record)

GRAPH = "passages.graph"
MENTIONS = "mentions.arrays"
THRESHOLD = "threshold.json"
_TO_ERASE = "erase"  # the name under which a draft notes that text was removed from it
_KEPT = 2048  # chunks, and as many questions, that an index keeps in memory once they were read


class Index(StoredRecords, SharedByCopies):
    """An open index: records, vectors, and the stored replies of language models. Safe for threads.

    Args:
        path: the folder.
        manifest: the settings and models that made the index.
        database: the records.
        lease: keeps the state of the index that this process reads.
        lock: the lock of the writer; None for a reader.

    `Index.open` and `Index.create` make an `Index`. Any number of processes can read an index. A reader sees the
    state that was complete when the reader opened the index. One process at a time can write. The changes of a writer
    become the new state when the writer closes a complete index.

    >>> with Index.open("ada.kraq") as index:
    ...     sorted(entity.name for entity in index.all(Entity))
    ['Ada', 'England', 'London']
    """

    def __init__(self, path: Path, manifest: Manifest, database: Database, lease: Lease, lock: FileLock) -> None:
        """Use `Index.create` or `Index.open`."""
        self.path = path
        self.home = lease.home
        self.results = ResultStore(database)
        self._manifest, self._database = manifest, database
        self.own_store: StoreSettings | None = None  # what the user's settings say of the server, where they were given
        self._lease, self._lock = lease, lock
        self._stores: dict[str, VectorStore] = {}
        self._apart: TemporaryDirectory[str] | None = None
        self._whole_apart: TemporaryDirectory[str] | None = None
        self._opening, self._closed = threading.RLock(), False
        self._recent_chunks = Recent[str, Chunk](_KEPT)
        self._recent_questions = Recent[str, Question](_KEPT)

    @classmethod
    def create(
        cls,
        path: Path | str,
        settings: Settings,
        *,
        encoder_name: str,
        encoder_dimension: int,
        readers: int = access.ALL,
    ) -> Self:
        """Create an empty index, open for writing. It replaces the remains of a killed `create`.

        `readers` are the permission bits that its folder may have (`files.readers_of`). Raises
        IndexStateError if `path` already holds an index or anything else.
        """
        path = Path(path)
        states.require_free(path, readers)
        lock = FileLock(path / states.LOCK)
        lock.acquire()
        with ExitStack() as undo:
            undo.callback(lock.release)
            home = states.begin_empty(path)
            database = Database(home / states.DATABASE)
            with database.writing() as connection:
                tables.create(connection, manifests.SCHEMA_VERSION)
            manifest = manifests.new_manifest(settings, encoder_name, encoder_dimension)
            for folder in (home, path):
                manifests.write_fields(folder, manifests.to_fields(manifest))
            access.follow(path, home)
            access.follow(path, path / manifests.MANIFEST)
            maker = consent.index_at(path, manifest.created_at)
            consent.remember(maker, consent.asked_about(settings))  # who makes an index agrees to it
            undo.pop_all()
            return cls(path, manifest, database, Lease(home, {}, None), lock)

    @classmethod
    def open(cls, path: Path | str, *, write: bool = False, unfinished: bool = False, damaged: bool = False) -> Self:
        """Open an existing index.

        Readers get the last complete state; with `unfinished`, or if there is none, a writer's
        draft. `damaged` also opens a damaged index, to examine or repair it.

        Raises IndexStateError if it is missing, foreign, damaged or of another schema, and
        IndexLockedError if `write` is set and another process is changing it.
        """
        path = Path(path)
        require_own(path)
        lock = FileLock(path / states.LOCK)
        with ExitStack() as undo:
            undo.callback(lock.release)
            if write:
                lock.acquire()
            lease = states.begin_draft(path, mend=damaged) if write else states.hold_state(path, unfinished=unfinished)
            undo.callback(lease.release)
            manifest = manifests.parse(lease.fields, lease.home)
            if not damaged and lease.path(states.DATABASE) is None:
                raise IndexStateError(
                    f"{str(path)!r} is damaged: it has no {states.DATABASE}. Restore it from a copy, or delete the "
                    "folder and index again."
                )
            database = Database(lease.home / states.DATABASE, write=write, constant=lease.is_constant)
            undo.callback(database.close)
            tables.require_all(database)
            undo.pop_all()
            access.note_opened(path)
            return cls(path, manifest, database, lease, lock)

    def close(self) -> None:
        """Close the index. Changes to a complete index become its new state. A second call does
        nothing.

        Raises IndexStateError if that cannot be written (a full disk); the changes stay, and the
        next writer resumes.
        """
        with self._opening:
            if self._closed:
                return
            self._closed = True
            try:
                self._finish()
            finally:
                for store in self._stores.values():
                    store.close()
                self._stores.clear()
                self._recent_chunks.clear()
                self._recent_questions.clear()
                self._database.close()
                self._lease.release()
                if self._apart is not None:
                    self._apart.cleanup()
                self._lock.release()
            if self._whole_apart is None:
                states.give_back(self.path)
            else:
                self._whole_apart.cleanup()

    def let_go(self) -> None:
        """Hold the state no more, and remove what nobody holds: for a reader in a process that ends at once, where
        threads may still read what is open."""
        self._lease.release()
        states.give_back(self.path)

    def keep_until_closed(self, folder: TemporaryDirectory[str]) -> None:
        """Remove `folder`, which contains the index, when the index is closed."""
        self._whole_apart = folder

    def _finish(self) -> None:
        """Do a writer's part of closing."""
        if not self._database.write:
            return
        if not self._manifest.complete:
            if self._manifest.state:
                unfinished = "%s: readers see the last complete state until this change is finished: kraq index %s"
                logger.warning(unfinished, self.path, self.path)
            return

        for path in (self.home / states.VECTORS).glob(f"*{FRESH}"):  # not searchable yet, also of a killed writer
            self._store(path.name.removesuffix(FRESH)).seal()
        if not (self.home / GRAPH).exists():  # it was not made since the index began to change
            self.keep_passage_graph(self.all(Entity), self.all(Relationship))

        on_server = [store for store in self._stores.values() if isinstance(store, QdrantVectorStore)]
        erase = bool(self.results.settled(_TO_ERASE))
        self.results.unsettle(_TO_ERASE)
        if erase and not self._are_mentions_of_now():
            self.forget_mentions()

        self._database.stand_alone(erase=erase)
        self._database.close()
        states.publish(self.path)
        for store in on_server:
            store.forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r})"

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    @property
    def is_writer(self) -> bool:
        """Whether it was opened for writing."""
        return self._database.write

    def update_manifest(self, **changes: Any) -> Manifest:
        """Replace fields of the manifest, also on disk, and set `updated_at`."""
        if not self._database.write:
            raise IndexStateError(f"{str(self.path)!r} was opened for reading. Use Index.open(path, write=True).")

        with self._opening:
            if changes.get("complete") is False:
                (self.home / GRAPH).unlink(missing_ok=True)
                (self.home / THRESHOLD).unlink(missing_ok=True)
            changed = dataclasses.replace(self._manifest, **{"updated_at": manifests.now(), **changes})
            manifests.write_fields(self.home, manifests.to_fields(changed))
            self._manifest = changed
            if "settings" in changes:
                consent.remember(self.made_by, consent.asked_about(changed.settings))
        return changed

    def require_no_labels(self) -> None:
        """Raise ScopeError, for what reads all documents, if some may be read by some people
        only."""
        if self._manifest.has_labels:
            raise ScopeError(
                f"{str(self.path)!r} says who may read its documents, and this reads them all. Say who asks: --scope "
                "LABEL; its owner: --owner."
            )

    def require_labels(self) -> None:
        """Raise ScopeError if no document has labels, so that a scope means nothing."""
        if not self._manifest.has_labels:
            raise ScopeError(
                f"No document of {str(self.path)!r} says who may read it, so a scope would show nothing. Index it with "
                "labels: kraq index CORPUS --acl-column NAME"
            )

    def require_documents(self) -> None:
        """Raise IndexStateError for a part of an index in which nobody may read anything: no build would help."""
        is_view = self.path.parent.name == states.VIEWS or self._whole_apart is not None
        if is_view and not self.count(Document):
            raise IndexStateError(
                "No document can be read here: none has one of the labels of whoever asks. kraq compares labels letter "
                "by letter; `kraq status DIR --owner` opens the index for its owner."
            )

    def require_encoder(self, embedder: Embedder) -> None:
        """Raise EncoderMismatchError unless `embedder` is the one that built the index."""
        if embedder.name != self._manifest.encoder_name:
            raise EncoderMismatchError(
                f"{str(self.path)!r} was built with the encoder {self._manifest.encoder_name!r}, and this one is "
                f"{embedder.name!r}; their vectors cannot be compared. Open it with the encoder settings of its own "
                "manifest.json, the precision as it is there or left out, or index the corpus again."
            )

    def file(self, name: str) -> Path | None:
        """A file of the state, such as "raptor.json"; None if it has none. Raises IndexStateError for damage."""
        return self._lease.path(name)

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong with the database; nothing when it is sound."""
        return self._database.damage()

    def damaged_files(self) -> dict[str, str]:
        """Return what is wrong with files of a complete state, which are read in full; by their
        names."""
        return dict(damaged_files(self.home)) if self._lease.is_constant else {}

    def damaged_records(self, kind: type[Record]) -> list[str]:
        """Return the ids of damaged records."""
        with self._database.reading() as connection:
            return tables.damaged(connection, kind)

    def add(self, records: Iterable[Record]) -> None:
        """Insert records of any kinds in one transaction, and replace existing ids in their
        place."""
        with self._database.writing() as connection:
            tables.insert(connection, records)

    def replace(self, kind: type[R], records: Iterable[R]) -> None:
        """Make `records` the only ones of their kind, in one transaction."""
        with self._database.writing() as connection:
            tables.replace(connection, table_of(kind), records)

    def change(self, kind: type[R], gone: Iterable[str], records: Iterable[R]) -> None:
        """Remove and insert records in one transaction (`tables.change`)."""
        with self._database.writing() as connection:
            tables.change(connection, table_of(kind), gone, records)

    def delete(self, kind: type[Record], ids: Collection[str]) -> None:
        """Remove records in one transaction; unknown ids do not matter."""
        self.change(kind, ids, ())

    def remove(self, document_ids: Collection[str], chunk_ids: Collection[str]) -> None:
        """Remove these documents, and these chunks with what was extracted from them, in one transaction."""
        with self._database.writing() as connection:
            for kind, ids in ((Document, document_ids), (Chunk, chunk_ids), (Extraction, chunk_ids)):
                tables.change(connection, table_of(kind), ids, ())

    def note_removed(self, document_ids: Iterable[str]) -> None:
        """Note by hashes of their ids that the index once had these documents. It keeps nothing
        else of them."""
        for document_id in document_ids:
            self.results.settle(self._removed(document_id), "yes")

    def were_removed(self, document_ids: Iterable[str]) -> set[str]:
        """Return those of the documents that the index once had."""
        return {document_id for document_id in document_ids if self.results.settled(self._removed(document_id))}

    def _removed(self, document_id: str) -> str:
        return f"removed {content_id(self._manifest.created_at, document_id)}"

    def erase_when_complete(self) -> None:
        """Note that text was removed, so that the file of the next complete state has nothing of
        it."""
        self.results.settle(_TO_ERASE, "yes")

    @property
    def is_constant(self) -> bool:
        """Whether this is a complete state that is read, in which nothing changes."""
        return self._lease.is_constant

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        """Chunks in the order of `ids`. Raises UnknownRecordError."""
        if not self.is_constant:
            return self.get(Chunk, ids)
        return self._recent_chunks.of(ids, lambda new: self.get(Chunk, new))

    def mentions(self) -> Mentions:
        """What all extractions say, in reading order. Of those that are as they were when this was last asked of a
        writer it is taken from a file; a writer keeps it for the next change."""
        sums = self._sums_of_extractions()
        chunk_ids = [chunk_id for chunk_id in self.reading_order() if chunk_id in sums]

        kept, kept_sums = self._kept_mentions()
        new = [chunk_id for chunk_id in chunk_ids if kept_sums.get(chunk_id) != sums[chunk_id]]
        if not new and chunk_ids == kept.chunk_ids:
            return kept

        mentions = kept.updated(chunk_ids, self._extractions_of(new))
        if self._database.write:
            with states.writing_to(self.home):
                save_mentions(self.home / MENTIONS, mentions, sums)
        return mentions

    def _sums_of_extractions(self) -> dict[str, int]:
        """The checksums of all extractions, by their chunks' ids."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT id, sum FROM extractions").fetchall()
        return {restored(key): stored_sum for key, stored_sum in rows}

    def _are_mentions_of_now(self) -> bool:
        """Whether the file of `mentions` can be read and has nothing but what extractions say that are there."""
        _, kept_sums = self._kept_mentions()
        sums = self._sums_of_extractions()
        return bool(kept_sums) and all(sums.get(chunk_id) == kept for chunk_id, kept in kept_sums.items())

    def _kept_mentions(self) -> tuple[Mentions, dict[str, int]]:
        """Those that are in the file, with the checksums of the extractions that they were made from."""
        path = self.file(MENTIONS)
        try:
            kept = read_mentions(path) if path else None
        except (OSError, ValueError) as error:
            logger.warning("%s cannot be used (%s): all extractions are read", path, error)
            kept = None
        return kept or (Mentions(), {})

    def forget_mentions(self) -> None:
        """Remove the file of `mentions`, which would keep what extractions said that are not there any more."""
        (self.home / MENTIONS).unlink(missing_ok=True)

    def questions_by_id(self, ids: Sequence[str]) -> list[Question]:
        """Questions in the order of `ids`. Raises UnknownRecordError."""
        if not self.is_constant:
            return self.get(Question, ids)
        return self._recent_questions.of(ids, lambda new: self.get(Question, new))

    def passage_graph(self) -> PassageGraph:
        """The graph of passages and the entities that they name; it is made now for a draft. Raises IndexStateError for
        one that is damaged."""
        path = self.file(GRAPH)
        return PassageGraph.open(path) if path else self._graph_of(self.all(Entity), self.all(Relationship))

    def keep_passage_graph(self, entities: Iterable[Entity], relationships: Iterable[Relationship]) -> None:
        """Store the graph of the chunks and of what will be the entities and relationships."""
        self.save_passage_graph(self._graph_of(entities, relationships))

    def save_passage_graph(self, graph: PassageGraph) -> None:
        """Store the graph of passages and entities that walks read."""
        with states.writing_to(self.home):
            graph.save(self.home / GRAPH)

    def _graph_of(self, entities: Iterable[Entity], relationships: Iterable[Relationship]) -> PassageGraph:
        entities = list(entities)
        mentions = ((chunk_id, entity.id) for entity in entities for chunk_id in entity.chunk_ids)
        links = ((link.source_id, link.target_id, link.weight) for link in relationships)
        phrases = {entity.id for entity in entities if entity.type == PHRASE}
        return passage_graph(self.ids(Chunk), mentions, links, phrases)

    @property
    def chunk_vectors(self) -> VectorStore:
        return self.vectors_named("chunks")

    @property
    def question_vectors(self) -> VectorStore:
        return self.vectors_named("questions")

    def vectors_named(self, name: str) -> VectorStore:
        """A store of its own beside the two above, made when first asked for: "entities", "reports", ...

        The index keeps what a reader adds to one for later readers, if nobody else writes at that
        moment.
        """
        with self._opening:
            if self._closed:
                raise IndexStateError(f"The index {str(self.path)!r} was closed. Open it again: Index.open(path).")
            if name not in self._stores:
                is_local = self._manifest.settings.store.url is None
                self._stores[name] = self._store(name) if is_local else self._on_server(name)
            return self._stores[name]

    def _on_server(self, name: str) -> QdrantVectorStore:
        """Open the vectors on the server that the user's settings name. Raises UntrustedError if
        neither they name it nor anybody agreed to it."""
        server, own = self._manifest.settings.store, self.own_store
        bare = consent.bare_address
        if own is not None and own.url is not None and bare(own.url) == bare(str(server.url)):
            server = own
        else:
            consent.require_consent(self.made_by, Settings(store=server))

        made = content_id(self._manifest.created_at, self._manifest.encoder_name)  # in every copy of the index the same
        return QdrantVectorStore(
            str(server.url),
            f"kraq-{made[:16]}-{name}",
            self._manifest.encoder_dimension,
            state=int(self._manifest.state or 0) + (not self._lease.is_constant),
            api_key=consent.own_key(str(server.url), server.api_key_env, "qdrant"),
        )

    @property
    def made_by(self) -> consent.Named:
        """The name under which the user's consents to this index are kept."""
        return consent.index_at(self.path, self._manifest.created_at)

    def usable_settings(self, *, trust: bool = False, own_models: bool = False, own_encoder: bool = False) -> Settings:
        """The settings with which the index was made, for work with it.

        What they name elsewhere is used where somebody agreed to it, as who made the index did, or agrees now by
        `trust`. Those who bring `own_models`, or their `own_encoder`, need not agree to the index's. Raises
        UntrustedError.
        """
        settings = self._manifest.settings
        if consent.open_questions(self.made_by, settings):
            settings = consent.without_models(settings) if own_models else settings
            settings = consent.without_encoder(settings) if own_encoder else settings
        consent.require_consent(self.made_by, settings, trust=trust)
        return settings

    def _store(self, name: str) -> LocalVectorStore:
        path, dimension = self.home / states.VECTORS / name, self._manifest.encoder_dimension
        if self._database.write:
            return LocalVectorStore(path, dimension)
        if self._lease.is_constant:
            path = self.file(f"{states.VECTORS}/{name}") or self.folder_apart() / name
        return LocalVectorStore(path, dimension, apart=self.folder_apart, keep=self._keep)

    def folder_apart(self) -> Path:
        """A folder for what a reader makes; it goes when the index is closed."""
        with self._opening:
            if self._apart is None:
                self._apart = TemporaryDirectory(prefix="kraq-")
            return Path(self._apart.name)

    def _keep(self, made: Path) -> None:
        """Ids of these points depend on the texts, so they serve readers of this state whatever else they hold."""
        lock = FileLock(self.path / states.LOCK)
        with suppress(IndexStateError):  # somebody writes, or the folder cannot be written: it is made again next time
            lock.acquire()
            try:
                states.install(made, self.home)
            finally:
                lock.release()
