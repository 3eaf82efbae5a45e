"""Reads and writes the part of an index's records that a change is about, and leaves the rest alone."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from kraq_dspy.asset.store import tables
from kraq_dspy.asset.store.codec import restored, storable
from kraq_dspy.asset.store.database import Database
from kraq_dspy.asset.store.tables import Record, table_of
from kraq_dspy.records import Chunk, Community, Document, Extraction

R = TypeVar("R", bound=Record)

_AT_ONCE = 500  # ids per query


class GraphRows:
    """Shares the database of an index."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def change(self, kind: type[R], gone: Iterable[str], records: Iterable[R]) -> None:
        """Remove records and put others in (`tables.change`), in one transaction."""
        with self._database.writing() as connection:
            tables.change(connection, table_of(kind), gone, records)

    def remove(self, document_ids: Collection[str], chunk_ids: Collection[str]) -> None:
        """These documents, and these chunks with what was extracted from them, in one transaction."""
        with self._database.writing() as connection:
            for kind, ids in ((Document, document_ids), (Chunk, chunk_ids), (Extraction, chunk_ids)):
                tables.change(connection, table_of(kind), ids, ())

    def known(self, kind: type[Record], ids: Collection[str]) -> set[str]:
        """The `ids` that are there."""
        return {id for id, _ in self._pairs(table_of(kind).name, "id, id", ids)}

    def reading_order(self, document_ids: Collection[str]) -> dict[str, str]:
        """The reading order of the chunks of these documents."""
        order: dict[str, str] = {}
        with self._database.reading() as connection:
            for some in _parts([storable(id) for id in sorted(document_ids)]):
                order |= tables.reading_order(connection, f"document_id IN ({_marks(some)})", some)
        return order

    def documents_of(self, chunk_ids: Collection[str]) -> dict[str, str]:
        """Document ids by chunk ids."""
        return dict(self._pairs("chunks", "id, document_id", chunk_ids))

    def families(self, entity_ids: Collection[str]) -> list[Community]:
        """The broadest communities that have one of these entities, with all that they were split into, in order.

        Where none has, one of the smallest, so that it is known that there are some.
        """
        members = "FROM communities, json_each(data, '$.entity_ids') AS member WHERE level = 0"
        chosen: set[str] = set()
        with self._database.reading() as connection:
            for some in _parts(sorted(entity_ids)):
                sql = f"SELECT DISTINCT communities.id {members} AND member.value IN ({_marks(some)})"
                chosen.update(id for (id,) in connection.execute(sql, some))
            if not chosen:
                smallest = "SELECT id FROM communities WHERE level = 0 ORDER BY seq DESC LIMIT 1"
                chosen.update(id for (id,) in connection.execute(smallest))
        rows = dict(self._rows(Community, "id", chosen))
        parents = set(chosen)
        while parents:
            parts = dict(self._rows(Community, "parent_id", parents))
            parents = {part.id for seq, part in parts.items() if seq not in rows}
            rows |= parts
        return [rows[seq] for seq in sorted(rows)]

    def sizes(self) -> Iterator[tuple[int, int, str]]:
        """Level, number of entities and id of every community, in order."""
        with self._database.reading() as connection:
            sql = "SELECT level, json_array_length(data, '$.entity_ids'), id FROM communities ORDER BY seq"
            yield from connection.execute(sql).fetchall()

    def _rows(self, kind: type[R], column: str, values: Collection[str]) -> Iterator[tuple[int, R]]:
        """The records that have one of the values in a column, with their places."""
        with self._database.reading() as connection:
            for some in _parts([storable(value) for value in values]):
                sql = f"SELECT seq, id, data, sum FROM {table_of(kind).name} WHERE {column} IN ({_marks(some)})"
                for seq, *row in connection.execute(sql, some).fetchall():
                    yield seq, tables.record_of(kind, *row)

    def _pairs(self, table: str, columns: str, ids: Collection[str]) -> Iterator[tuple[str, str]]:
        """The values of two columns, of the records that there are of `ids`."""
        with self._database.reading() as connection:
            for some in _parts([storable(id) for id in ids]):
                sql = f"SELECT {columns} FROM {table} WHERE id IN ({_marks(some)})"
                yield from ((restored(one), restored(other)) for one, other in connection.execute(sql, some).fetchall())


def _parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
