"""Opens the asset on disk, a folder `NAME.kraq/` of states that never change (`store/states.py`). In each state:

manifest.json   what it is: schema version, settings, encoder, models
index.db        SQLite: every record, and the results of language-model calls
passages.graph  passages and the entities that they name, in arrays
mentions.arrays what the extractions say, so that a change reads only those that are new
floor.json      below which score a question is not answered here
sums.json       what these files are, to know one that is damaged
vectors/        `chunks`, `questions` and others, unless a Qdrant server keeps them
"""

import dataclasses
import json
import logging
import sqlite3
import threading
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence, Set
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self, TypeVar

import orjson

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.recent import Recent
from kraq_dspy.asset import consent
from kraq_dspy.asset.graph.mentions import Mentions
from kraq_dspy.asset.graph.mentions_file import read_mentions, save_mentions
from kraq_dspy.asset.graph.networkx_view import to_networkx
from kraq_dspy.asset.graph.passage_graph import PassageGraph, passage_graph
from kraq_dspy.asset.store import access, states, tables
from kraq_dspy.asset.store import manifest as manifests
from kraq_dspy.asset.store.codec import restored, storable
from kraq_dspy.asset.store.database import Database
from kraq_dspy.asset.store.manifest import Manifest
from kraq_dspy.asset.store.own_files import FileLock, damaged_files, require_own
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.asset.store.states import Lease
from kraq_dspy.asset.store.sync import batches
from kraq_dspy.asset.store.tables import TABLES, table_of
from kraq_dspy.asset.store.vectors import LocalVectorStore, QdrantVectorStore
from kraq_dspy.asset.store.vectors.local import FRESH
from kraq_dspy.errors import EncoderMismatchError, IndexStateError, ScopeError, UnknownRecordError
from kraq_dspy.ports import Embedder, VectorStore
from kraq_dspy.records import (
    Chunk,
    Claim,
    Community,
    Document,
    Entity,
    Extraction,
    Question,
    Record,
    Relationship,
    content_id,
)
from kraq_dspy.settings import Settings, StoreSettings

if TYPE_CHECKING:
    import networkx

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Record)

GRAPH = "passages.graph"
MENTIONS = "mentions.arrays"
FLOOR = "floor.json"
_TO_ERASE = "erase"  # the name under which a draft notes that text was removed from it
_AT_ONCE = 500  # rows per read, ids per query
_KEPT = 2048  # chunks, and as many questions, that an index keeps in memory once they were read


class Index(SharedByCopies):
    """Records by type, their vectors, and the results of language models. Safe for threads.

    >>> with Index.open("ada.kraq") as index:
    ...     sorted(entity.name for entity in index.all(Entity))
    ['Ada', 'England', 'London']

    Any number of processes read: each sees the state that was the last complete one when it opened the index, until it
    closes it. One process at a time writes; what it wrote is the new state once it closes an index that is complete.
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
        """A new, empty index, open for writing. What a killed `create` left behind is replaced.

        `readers` are the permission bits that its folder may have (`access.readers_of`).

        Raises IndexStateError when `path` holds an index or anything else already.
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
        """An index that exists.

        Readers get the last complete state; with `unfinished`, or if there is none, what a writer makes or has left.
        With `damaged`, one that is not what was written is opened too: to look what is wrong, or to mend it.

        Raises IndexStateError when it is absent, foreign, damaged or of another schema; IndexLockedError when `write`
        is asked for and another process holds it.
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
            return cls(path, manifest, database, lease, lock)

    def close(self) -> None:
        """May be called twice. What was written to a complete index becomes its new state.

        Raises IndexStateError when that cannot be written (a full disk): it is kept, and the next writer goes on.
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

    def keep_until_closed(self, folder: TemporaryDirectory[str]) -> None:
        """The index lies in `folder`, which is removed when it is closed."""
        self._whole_apart = folder

    def _finish(self) -> None:
        """A writer's part of closing."""
        if not self._database.write:
            return
        if not self._manifest.complete:
            if self._manifest.state:
                unfinished = "%s: readers see the last complete state until this change is finished: kraq resume %s"
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

    def update_manifest(self, **changes: Any) -> Manifest:
        """Replace fields of the manifest, on disk too; `updated_at` follows by itself."""
        if not self._database.write:
            raise IndexStateError(f"{str(self.path)!r} was opened for reading. Use Index.open(path, write=True).")

        with self._opening:
            if changes.get("complete") is False:
                (self.home / GRAPH).unlink(missing_ok=True)
                (self.home / FLOOR).unlink(missing_ok=True)
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
                f"{str(self.path)!r} says who may read its documents, and this reads them all. Say who asks: --as "
                "LABEL; its owner: --as-owner."
            )

    def require_labels(self) -> None:
        """Raises ScopeError if no document says who may read it, so that a scope means nothing."""
        if not self._manifest.has_labels:
            raise ScopeError(
                f"No document of {str(self.path)!r} says who may read it, so a scope would show nothing. Index it with "
                "labels: kraq index CORPUS --acl-column NAME"
            )

    def require_encoder(self, embedder: Embedder) -> None:
        """Raises EncoderMismatchError unless `embedder` is the one that the index was built with."""
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
        """The ids of records that are not what was written."""
        with self._database.reading() as connection:
            return tables.damaged(connection, kind)

    def add(self, records: Iterable[Record]) -> None:
        """Insert records of any kinds, in one transaction; a record whose id is there is replaced, in its place."""
        with self._database.writing() as connection:
            tables.insert(connection, records)

    def replace(self, kind: type[R], records: Iterable[R]) -> None:
        """Make `records` the only ones of their kind, in one transaction."""
        with self._database.writing() as connection:
            tables.replace(connection, table_of(kind), records)

    def change(self, kind: type[R], gone: Iterable[str], records: Iterable[R]) -> None:
        """Remove records and put others in (`tables.change`), in one transaction."""
        with self._database.writing() as connection:
            tables.change(connection, table_of(kind), gone, records)

    def delete(self, kind: type[Record], ids: Collection[str]) -> None:
        """Remove records, in one transaction; ids that are not there do not matter."""
        self.change(kind, ids, ())

    def remove(self, document_ids: Collection[str], chunk_ids: Collection[str]) -> None:
        """Remove these documents, and these chunks with what was extracted from them, in one transaction."""
        with self._database.writing() as connection:
            for kind, ids in ((Document, document_ids), (Chunk, chunk_ids), (Extraction, chunk_ids)):
                tables.change(connection, table_of(kind), ids, ())

    def note_removed(self, document_ids: Iterable[str]) -> None:
        """Note that these documents were there, by hashes of their ids alone: nothing else is left of them."""
        for document_id in document_ids:
            self.results.settle(self._removed(document_id), "yes")

    def were_removed(self, document_ids: Iterable[str]) -> set[str]:
        """Return those of the documents that the index had once."""
        return {document_id for document_id in document_ids if self.results.settled(self._removed(document_id))}

    def _removed(self, document_id: str) -> str:
        return f"removed {content_id(self._manifest.created_at, document_id)}"

    def erase_when_complete(self) -> None:
        """Note that text was removed: nothing of it is to be left in the file of the next complete state."""
        self.results.settle(_TO_ERASE, "yes")

    def all(self, kind: type[R], **equal: Any) -> Generator[R, None, None]:
        """Every record of a kind, in the order of insertion, as of the moment when the first one is read.

        `equal` asks for the value of a column: `all(Chunk, document_id="d1")`; see `tables.py` for the columns.
        """
        table = table_of(kind)
        for column in equal:
            if column not in table.columns:
                raise TypeError(f"{kind.__name__} cannot be asked for by {column!r}; possible: {table.columns}.")
        where = " AND ".join(f"{column} IS ?" for column in equal)
        return self._stream(kind, where, tuple(map(storable, equal.values())))

    def get(self, kind: type[R], ids: Sequence[str]) -> list[R]:
        """Records in the order of `ids`. Raises UnknownRecordError."""
        rows = self._rows_where(kind, "id, data, sum", "id", ids)
        records = {restored(key): tables.record_of(kind, key, *rest) for key, *rest in rows}
        try:
            return [records[id] for id in ids]
        except KeyError as error:
            raise UnknownRecordError(
                f"{str(self.path)!r} has no {kind.__name__} with the id {error}. The index may have changed since "
                "the id was read."
            ) from None

    def known(self, kind: type[Record], ids: Collection[str]) -> set[str]:
        """The `ids` that are there."""
        return {restored(key) for (key,) in self._rows_where(kind, "id", "id", ids)}

    def labels(self) -> dict[str, tuple[str, ...]]:
        """Tell who may read each document, by its id, in the order of insertion."""
        labels = "CASE typeof(data) WHEN 'text' THEN json_extract(data, '$.labels') ELSE data END"
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT id, typeof(data), {labels} FROM documents ORDER BY seq").fetchall()
        return {
            restored(id): tuple(json.loads(value or "[]") if kind == "text" else _labels_in(value))
            for id, kind, value in rows
        }

    def documents_of(self, chunk_ids: Collection[str]) -> dict[str, str]:
        """Document ids by chunk ids."""
        rows = self._rows_where(Chunk, "id, document_id", "id", chunk_ids)
        return {restored(chunk_id): restored(document_id) for chunk_id, document_id in rows}

    def _rows_where(self, kind: type, columns: str, column: str, values: Collection[str]) -> Iterator[tuple[Any, ...]]:
        """These columns of the records that have one of the values in a column."""
        with self._database.reading() as connection:
            for some in batches(map(storable, values), _AT_ONCE):
                marks = ", ".join("?" * len(some))
                sql = f"SELECT {columns} FROM {table_of(kind).name} WHERE {column} IN ({marks})"
                yield from connection.execute(sql, some).fetchall()

    def ids(self, kind: type[Record], *, without: type[Record] | None = None) -> list[str]:
        """The ids of a kind in the order of insertion, but for those that a record of the kind `without` has, too."""
        table, others = table_of(kind).name, table_of(without).name if without else ""
        lacking = f"WHERE NOT EXISTS (SELECT 1 FROM {others} WHERE {others}.id = {table}.id)" if others else ""
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT id FROM {table} {lacking} ORDER BY seq").fetchall()
        return [restored(key) for (key,) in rows]

    def count(self, kind: type[Record]) -> int:
        with self._database.reading() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table_of(kind).name}").fetchone()[0])

    def counts(self) -> dict[str, int]:
        """Number of records by table name: "documents", "chunks", ..., "failures"."""
        return {table.name: self.count(kind) for kind, table in TABLES.items()}

    def left_out(self) -> dict[str, int]:
        """Tell how many "documents" are web pages without their boilerplate, and how many "lines"
        that was."""
        with self._database.reading() as connection:
            documents, lines = connection.execute(
                "SELECT count(*), coalesce(sum(json_array_length(data, '$.left_out')), 0) FROM documents "
                """WHERE typeof(data) = 'text' AND instr(data, '"left_out":["')"""
            ).fetchone()
        return {"documents": documents, "lines": lines}

    def lines_left_out(self) -> set[str]:
        """The lines that web pages were stored without, as boilerplate."""
        columns = "typeof(data), CASE typeof(data) WHEN 'text' THEN json_extract(data, '$.left_out') ELSE data END"
        some = "typeof(data) IS NOT 'text' OR instr(data, '\"left_out\":[\"')"
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT {columns} FROM documents WHERE {some}").fetchall()
        lines: set[str] = set()
        for kind, value in rows:
            lines.update(json.loads(value) if kind == "text" else json.loads(restored(value)).get("left_out", []))
        return lines

    @property
    def is_constant(self) -> bool:
        """Whether this is a complete state that is read, in which nothing changes."""
        return self._lease.is_constant

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        """Chunks in the order of `ids`. Raises UnknownRecordError."""
        if not self.is_constant:
            return self.get(Chunk, ids)
        return self._recent_chunks.of(ids, lambda new: self.get(Chunk, new))

    def reading_order(self, document_ids: Collection[str] | None = None) -> dict[str, str]:
        """Document ids by chunk ids, of all or of these documents: by document id, then position, however the chunks
        came in."""
        position = "CASE typeof(data) WHEN 'text' THEN json_extract(data, '$.position') ELSE data END"
        columns = f"document_id, {position}, id"
        if document_ids is None:
            with self._database.reading() as connection:
                rows: Iterable[tuple[Any, ...]] = connection.execute(f"SELECT {columns} FROM chunks").fetchall()
        else:
            rows = self._rows_where(Chunk, columns, "document_id", document_ids)

        places = []
        for document_id, at, id in rows:
            place = json.loads(restored(at))["position"] if isinstance(at, bytes) else at
            places.append((restored(document_id), place, restored(id)))
        return {id: document_id for document_id, _, id in sorted(places)}

    def extractions(self) -> Iterator[Extraction]:
        """All extractions in reading order, not in that of their arrival, so that nothing depends on which answer came
        first."""
        stored = set(self.ids(Extraction))
        chunk_ids = [chunk_id for chunk_id in self.reading_order() if chunk_id in stored]
        yield from self._extractions_of(chunk_ids)

    def _extractions_of(self, chunk_ids: Sequence[str]) -> Iterator[Extraction]:
        for start in range(0, len(chunk_ids), _AT_ONCE):
            yield from self.get(Extraction, chunk_ids[start : start + _AT_ONCE])

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

    def questions(
        self, level: int | None = None, *, source: str | None = None, duplicates: bool = False
    ) -> list[Question]:
        """Questions of a level and a source, all unless given, the broadest first; those marked as duplicates only if
        `duplicates`."""
        columns = {column: value for column, value in (("level", level), ("source", source)) if value is not None}
        where = [f"{column} IS ?" for column in columns] + ([] if duplicates else ["duplicate_of IS NULL"])
        stored = self._stream(Question, " AND ".join(where), tuple(columns.values()))
        return sorted(stored, key=lambda question: (question.level < 0, question.level))  # random ones have none

    def links_of(self, entity_ids: Collection[str]) -> list[Relationship]:
        """The relationships of which one end at least is among these entities, by id."""
        links: dict[str, Relationship] = {}
        for end in ("source_id", "target_id"):
            for row in self._rows_where(Relationship, "id, data, sum", end, entity_ids):
                link = tables.record_of(Relationship, *row)
                links[link.id] = link
        return [links[link_id] for link_id in sorted(links)]

    def links_among(self, entity_ids: Set[str]) -> list[Relationship]:
        """The relationships of which both ends are among these entities, by id."""
        rows = self._rows_where(Relationship, "id, target_id, data, sum", "source_id", entity_ids)
        links = [
            tables.record_of(Relationship, key, data, stored_sum)
            for key, target, data, stored_sum in rows
            if restored(target) in entity_ids
        ]
        return sorted(links, key=lambda link: link.id)

    def claims_about(self, entity_ids: Collection[str]) -> list[Claim]:
        rows = self._rows_where(Claim, "id, data, sum", "entity_id", entity_ids)
        return [tables.record_of(Claim, *row) for row in rows]

    def subjects_with(self, object_ids: Set[str]) -> set[str]:
        """The entities of which a claim says what links them to one of these objects. All claims are read."""
        claims = self.all(Claim) if object_ids else ()
        return {claim.entity_id for claim in claims if claim.object_id in object_ids}

    def chunks_of_entities(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """The names of each entity and the ids of its chunks, by its id: read without the rest, of which there is
        more."""
        fields = "json_extract(data, '$.names', '$.chunk_ids')"
        columns = f"id, CASE typeof(data) WHEN 'text' THEN {fields} ELSE data END, typeof(data)"
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT {columns} FROM entities").fetchall()

        of_entities = {}
        for key, value, kind in rows:
            if kind == "text":
                names, chunk_ids = orjson.loads(value)
            else:  # what SQLite does not keep as text
                entity = json.loads(restored(value))
                names, chunk_ids = entity["names"], entity["chunk_ids"]
            of_entities[restored(key)] = tuple(names), tuple(chunk_ids)
        return of_entities

    def communities_at(self, level: int) -> list[Community]:
        """The partition of all entities at a level: its communities, and the leaves of the broader levels."""
        return list(self._stream(Community, "level = ? OR (level < ? AND is_leaf)", (level, level)))

    def families(self, entity_ids: Collection[str]) -> list[Community]:
        """The broadest communities that have one of these entities, with all that they were split into, in order.

        Where none has, one of the smallest, so that it is known that there are some.
        """
        members = "FROM communities, json_each(data, '$.entity_ids') AS member WHERE level = 0"
        chosen: set[str] = set()
        with self._database.reading() as connection:
            for some in batches(sorted(entity_ids), _AT_ONCE):
                marks = ", ".join("?" * len(some))
                sql = f"SELECT DISTINCT communities.id {members} AND member.value IN ({marks})"
                chosen.update(id for (id,) in connection.execute(sql, some))
            if not chosen:
                smallest = "SELECT id FROM communities WHERE level = 0 ORDER BY seq DESC LIMIT 1"
                chosen.update(id for (id,) in connection.execute(smallest))
        family: dict[str, Community] = {}
        column = "id"
        while chosen:
            rows = self._rows_where(Community, "id, data, sum", column, chosen)
            parts = [tables.record_of(Community, *row) for row in rows]
            chosen = {part.id for part in parts} - family.keys()
            family.update((part.id, part) for part in parts)
            column = "parent_id"
        return sorted(family.values(), key=lambda each: (each.level, -len(each.entity_ids), each.id))

    def community_sizes(self) -> list[tuple[int, int, str]]:
        """Level, number of entities and id of every community."""
        with self._database.reading() as connection:
            sql = "SELECT level, json_array_length(data, '$.entity_ids'), id FROM communities"
            return connection.execute(sql).fetchall()

    def partition_sizes(self) -> dict[int, int]:
        """Tell how many communities `communities_at` finds at each level, broadest first."""
        with self._database.reading() as connection:
            sql = "SELECT level, is_leaf, count(*) FROM communities GROUP BY level, is_leaf"
            counts = connection.execute(sql).fetchall()  # leaves stand for their entities on deeper levels, too
        return {
            level: sum(n for its, is_leaf, n in counts if its == level or (its < level and is_leaf))
            for level in sorted({level for level, _, _ in counts})
        }

    def deepest_level(self) -> int:
        """The level of the narrowest communities; -1 if there are none."""
        with self._database.reading() as connection:
            return int(connection.execute("SELECT coalesce(max(level), -1) FROM communities").fetchone()[0])

    def graph(self) -> "networkx.MultiDiGraph":
        """Entities as nodes by id, relationships as edges keyed by id, with the records' fields as attributes.

        A node also has `claims`, the statements about it, and `communities`, the ids of its communities; an edge
        `claims`, the statements about what links the two.
        """
        return to_networkx(self.all(Entity), self.all(Relationship), self.all(Claim), self.all(Community))

    def passage_graph(self) -> PassageGraph:
        """The graph of passages and the entities that they name; it is made now for a draft. Raises IndexStateError for
        one that is damaged."""
        path = self.file(GRAPH)
        return PassageGraph.open(path) if path else self._graph_of(self.all(Entity), self.all(Relationship))

    def keep_passage_graph(self, entities: Iterable[Entity], relationships: Iterable[Relationship]) -> None:
        """Store the graph of the chunks and of what will be the entities and relationships."""
        self.keep_walks(self._graph_of(entities, relationships))

    def keep_walks(self, graph: PassageGraph) -> None:
        """Store the graph of passages and entities that walks read."""
        with states.writing_to(self.home):
            graph.save(self.home / GRAPH)

    def _graph_of(self, entities: Iterable[Entity], relationships: Iterable[Relationship]) -> PassageGraph:
        mentions = ((chunk_id, entity.id) for entity in entities for chunk_id in entity.chunk_ids)
        links = ((link.source_id, link.target_id, link.weight) for link in relationships)
        return passage_graph(self.ids(Chunk), mentions, links)

    @property
    def chunk_vectors(self) -> VectorStore:
        return self.vectors_named("chunks")

    @property
    def question_vectors(self) -> VectorStore:
        return self.vectors_named("questions")

    def vectors_named(self, name: str) -> VectorStore:
        """A store of its own beside the two above, made when first asked for: "entities", "reports", ...

        What a reader adds to one is kept for later readers if nobody else writes at that moment.
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

    def _stream(self, kind: type[R], where: str, values: tuple[Any, ...]) -> Generator[R, None, None]:
        sql = f"SELECT id, data, sum FROM {table_of(kind).name} {f'WHERE {where}' if where else ''} ORDER BY seq"
        with self._database.reading() as connection:
            cursor = connection.execute(sql, values)
            try:
                while rows := cursor.fetchmany(_AT_ONCE):
                    for row in rows:
                        yield tables.record_of(kind, *row)
            finally:
                with suppress(sqlite3.ProgrammingError):  # an index closed under a reader that stopped half-way
                    cursor.close()


def _labels_in(data: bytes) -> list[str]:
    """Read the labels of a document whose text SQLite does not keep as text."""
    labels: list[str] = json.loads(restored(data)).get("labels", [])
    return labels
