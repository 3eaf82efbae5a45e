"""Reads the records of an index from its database: by kind, by id, and along the links between them.

`Index` adds the rest: files, vectors, states and writing.
"""

import json
import sqlite3
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from kraq_dspy.asset.graph.networkx_view import to_networkx
from kraq_dspy.asset.store import tables
from kraq_dspy.asset.store.codec import restored, storable
from kraq_dspy.asset.store.database import Database
from kraq_dspy.asset.store.sync import batches
from kraq_dspy.asset.store.tables import TABLES, table_of
from kraq_dspy.errors import UnknownRecordError
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Extraction, Question, Record, Relationship

if TYPE_CHECKING:
    import networkx

R = TypeVar("R", bound=Record)

_AT_ONCE = 500  # rows per read, ids per query


class StoredRecords:
    """The records of an index, to be read. Safe for threads.

    Every method reads what the database holds at that moment; none writes.
    """

    path: Path
    _database: Database

    def all(self, kind: type[R], **equal: Any) -> Generator[R, None, None]:
        """Yield every record of a kind in the order of insertion, as of the moment of the first
        one.

        `equal` selects by the value of a column: `all(Chunk, document_id="d1")`. `tables.py` lists
        the columns.
        """
        table = table_of(kind)
        for column in equal:
            if column not in table.columns:
                raise TypeError(f"{kind.__name__} cannot be asked for by {column!r}; possible: {table.columns}.")
        where = " AND ".join(f"{column} IS ?" for column in equal)
        return self._stream(kind, where, tuple(map(storable, equal.values())))

    def get(self, kind: type[R], ids: Sequence[str]) -> list[R]:
        """Return records in the order of `ids`. Raises UnknownRecordError."""
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
        """Return those of the `ids` that the index has."""
        return {restored(key) for (key,) in self._rows_where(kind, "id", "id", ids)}

    def labels(self) -> dict[str, tuple[str, ...]]:
        """Return each document's labels, by its id, in the order of insertion."""
        return {id: tuple(labels or ()) for id, labels in self._fields(Document, "labels")}

    def documents_of(self, chunk_ids: Collection[str]) -> dict[str, str]:
        """Return document ids by chunk ids."""
        rows = self._rows_where(Chunk, "id, document_id", "id", chunk_ids)
        return {restored(chunk_id): restored(document_id) for chunk_id, document_id in rows}

    def _rows_where(self, kind: type, columns: str, column: str, values: Collection[str]) -> Iterator[tuple[Any, ...]]:
        """Yield these columns of the records with one of the values in `column`."""
        with self._database.reading() as connection:
            for some in batches(map(storable, values), _AT_ONCE):
                marks = ", ".join("?" * len(some))
                sql = f"SELECT {columns} FROM {table_of(kind).name} WHERE {column} IN ({marks})"
                yield from connection.execute(sql, some).fetchall()

    def ids(self, kind: type[Record], *, without: type[Record] | None = None) -> list[str]:
        """Return the ids of a kind in the order of insertion, except those that a record of the
        kind `without` also has."""
        table, others = table_of(kind).name, table_of(without).name if without else ""
        lacking = f"WHERE NOT EXISTS (SELECT 1 FROM {others} WHERE {others}.id = {table}.id)" if others else ""
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT id FROM {table} {lacking} ORDER BY seq").fetchall()
        return [restored(key) for (key,) in rows]

    def count(self, kind: type[Record]) -> int:
        with self._database.reading() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table_of(kind).name}").fetchone()[0])

    def counts(self) -> dict[str, int]:
        """Number of records by table name: "documents", "chunks", ..., "failures"; of questions, those of communities
        that ask what no other asks, as lists show them."""
        return {table.name: self.count(kind) for kind, table in TABLES.items()} | {
            "questions": len(self.questions(source="kraq"))
        }

    def left_out(self) -> dict[str, int]:
        """Count the "documents" of which something was left out, and its "lines": a web page's boilerplate, and a line
        for each kind of thing that an office file hides or that kraq does not read."""
        with self._database.reading() as connection:
            documents, lines = connection.execute(
                "SELECT count(*), coalesce(sum(json_array_length(data, '$.left_out')), 0) FROM documents "
                """WHERE typeof(data) = 'text' AND instr(data, '"left_out":["')"""
            ).fetchone()
        return {"documents": documents, "lines": lines}

    def lines_left_out(self) -> set[str]:
        """Return the lines that kraq left out of web pages as boilerplate."""
        some = "WHERE typeof(data) IS NOT 'text' OR instr(data, '\"left_out\":[\"')"
        return {line for _, lines in self._fields(Document, "left_out", where=some) for line in lines or ()}

    def reading_order(self, document_ids: Collection[str] | None = None) -> dict[str, str]:
        """Return document ids by chunk ids, of all or of these documents. They are sorted by
        document id, then position, whatever the order of insertion."""
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
        """Yield all extractions in reading order, so that nothing depends on which reply came
        first."""
        stored = set(self.ids(Extraction))
        chunk_ids = [chunk_id for chunk_id in self.reading_order() if chunk_id in stored]
        yield from self._extractions_of(chunk_ids)

    def _extractions_of(self, chunk_ids: Sequence[str]) -> Iterator[Extraction]:
        for start in range(0, len(chunk_ids), _AT_ONCE):
            yield from self.get(Extraction, chunk_ids[start : start + _AT_ONCE])

    def questions(
        self, level: int | None = None, *, source: str | None = None, duplicates: bool = False
    ) -> list[Question]:
        """Return questions of a level and a source (by default all), the broadest first, without
        duplicates by default."""
        columns = {column: value for column, value in (("level", level), ("source", source)) if value is not None}
        where = [f"{column} IS ?" for column in columns] + ([] if duplicates else ["duplicate_of IS NULL"])
        stored = self._stream(Question, " AND ".join(where), tuple(columns.values()))
        return sorted(stored, key=lambda question: (question.level < 0, question.level))  # random ones have none

    def links_of(self, entity_ids: Collection[str]) -> list[Relationship]:
        """Return the relationships with at least one end among these entities, sorted by id."""
        links: dict[str, Relationship] = {}
        for end in ("source_id", "target_id"):
            for row in self._rows_where(Relationship, "id, data, sum", end, entity_ids):
                link = tables.record_of(Relationship, *row)
                links[link.id] = link
        return [links[link_id] for link_id in sorted(links)]

    def links_among(self, entity_ids: Set[str]) -> list[Relationship]:
        """Return the relationships with both ends among these entities, sorted by id."""
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
        """Return the subjects of claims about a link to one of these objects. This reads all
        claims."""
        claims = self.all(Claim) if object_ids else ()
        return {claim.entity_id for claim in claims if claim.object_id in object_ids}

    def chunks_of_entities(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Return each entity's names and chunk ids by its id, without reading the larger rest."""
        return {
            id: (tuple(names), tuple(chunk_ids)) for id, names, chunk_ids in self._fields(Entity, "names", "chunk_ids")
        }

    def _fields(self, kind: type[Record], *names: str, where: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield the id and some fields of every record, None for a field that it lacks, without reading the rest."""
        paths = ", ".join(f"json_extract(data, '$.{name}')" for name in names)
        values = f"CASE typeof(data) WHEN 'text' THEN json_array({paths}) ELSE data END"
        with self._database.reading() as connection:
            sql = f"SELECT id, typeof(data), {values} FROM {table_of(kind).name} {where} ORDER BY seq"
            rows = connection.execute(sql).fetchall()
        for key, form, value in rows:
            if form == "text":
                yield restored(key), *orjson.loads(value)
            else:  # what SQLite does not keep as text
                record = json.loads(restored(value))
                yield restored(key), *map(record.get, names)

    def communities_at(self, level: int) -> list[Community]:
        """Return the partition of all entities at a level: its communities, and the leaves of
        broader levels."""
        return list(self._stream(Community, "level = ? OR (level < ? AND is_leaf)", (level, level)))

    def families(self, entity_ids: Collection[str]) -> list[Community]:
        """Return the broadest communities with one of these entities, and all their parts, in
        order. If none has one, return one of the smallest, to show that there are some.
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
        """Return the level, number of entities and id of every community."""
        with self._database.reading() as connection:
            sql = "SELECT level, json_array_length(data, '$.entity_ids'), id FROM communities"
            return connection.execute(sql).fetchall()

    def partition_sizes(self) -> dict[int, int]:
        """Return the number of communities that `communities_at` finds at each level, broadest
        first."""
        with self._database.reading() as connection:
            sql = "SELECT level, is_leaf, count(*) FROM communities GROUP BY level, is_leaf"
            counts = connection.execute(sql).fetchall()  # leaves stand for their entities on deeper levels, too
        return {
            level: sum(n for its, is_leaf, n in counts if its == level or (its < level and is_leaf))
            for level in sorted({level for level, _, _ in counts})
        }

    def deepest_level(self) -> int:
        """Return the level of the narrowest communities; -1 if there are none."""
        with self._database.reading() as connection:
            return int(connection.execute("SELECT coalesce(max(level), -1) FROM communities").fetchone()[0])

    def graph(self) -> "networkx.MultiDiGraph":
        """Return entities as nodes by id, relationships as edges keyed by id, and the records'
        fields as attributes.

        A node also has `claims` (statements about it) and `communities` (their ids). An edge has
        `claims`: statements about the link.
        """
        return to_networkx(self.all(Entity), self.all(Relationship), self.all(Claim), self.all(Community))

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
