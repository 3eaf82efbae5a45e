"""Says which table of `index.db` holds which record, and by which columns records can be asked for.

`seq` numbers the records of a table in the order in which they were first added. `data` is the whole record as JSON,
compressed if it is large and no query looks into it; `sum` is the checksum of `id` and `data`, compared whenever a
record is read.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from kraq_dspy.asset.store import results
from kraq_dspy.asset.store.codec import checksum, compressed, dumps, loads, restored, storable
from kraq_dspy.asset.store.database import Database
from kraq_dspy.errors import IndexStateError
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
    Record,
    Relationship,
    Summary,
)

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Table:
    """`key` is the attribute that identifies a record, `columns` are attributes that are copied out of the JSON."""

    name: str
    key: str = "id"
    columns: tuple[str, ...] = ()
    is_compressed: bool = False

    def id_of(self, record: Any) -> str:
        if isinstance(record, Failure):
            return results.failure_id(record.stage, record.item_id)
        return str(getattr(record, self.key))

    def row(self, record: Any) -> tuple[Any, ...]:
        values = (getattr(record, column) for column in self.columns)
        data = (compressed if self.is_compressed else storable)(dumps(record))
        key = storable(self.id_of(record))
        return (key, *map(storable, values), data, checksum(key, data))

    def indexes(self) -> list[str]:
        """The SQL statements that make them."""
        return [f"CREATE INDEX {self.name}_{column} ON {self.name} ({column})" for column in self.columns]

    def upsert(self) -> str:
        """An SQL statement for `row`. A record that is replaced keeps its place; an unchanged one is not written."""
        names = ("id", *self.columns, "data", "sum")
        changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        return (
            f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
            f"ON CONFLICT (id) DO UPDATE SET {changes} WHERE {self.name}.data IS NOT excluded.data"
        )


TABLES: dict[type, Table] = {
    Document: Table("documents"),
    Chunk: Table("chunks", columns=("document_id",)),
    Extraction: Table("extractions", key="chunk_id", is_compressed=True),
    Entity: Table("entities"),
    Relationship: Table("relationships", columns=("source_id", "target_id")),
    Claim: Table("claims", columns=("entity_id", "chunk_id")),
    Merge: Table("merges", columns=("entity_id",)),
    Community: Table("communities", columns=("level", "is_leaf", "parent_id")),
    Summary: Table("summaries", key="community_id"),
    Question: Table("questions", columns=("source", "level", "community_id", "duplicate_of")),
    Failure: Table("failures", columns=("stage", "item_id")),
}


def table_of(kind: type) -> Table:
    try:
        return TABLES[kind]
    except KeyError:
        known = ", ".join(known.__name__ for known in TABLES)
        raise TypeError(f"An index keeps no {kind.__name__}; it keeps: {known}.") from None


def create(connection: sqlite3.Connection, schema_version: int) -> None:
    """All tables, in the transaction that is open."""
    for table in TABLES.values():
        columns = "".join(f", {column}" for column in table.columns)
        connection.execute(
            f"CREATE TABLE {table.name} (seq INTEGER PRIMARY KEY, id NOT NULL UNIQUE{columns}, "
            "data NOT NULL, sum NOT NULL)"
        )
        for statement in table.indexes():
            connection.execute(statement)

    for statement in filter(str.strip, results.SCHEMA.split(";")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {schema_version}")


def require_all(database: Database) -> None:
    """Raises IndexStateError for a database that is not an index's."""
    with database.reading() as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if missing := sorted({table.name for table in TABLES.values()} - names):
        raise IndexStateError(
            f"{str(database.path)!r} is damaged: it is missing the tables {', '.join(missing)}. "
            "Restore the folder from a copy, or delete it and index the corpus again."
        )


def record_of(kind: type[R], key: str | bytes, data: str | bytes, stored_sum: int) -> R:
    """The record of a row. Raises IndexStateError if it is not what was written."""
    try:
        if checksum(key, data) == stored_sum:
            return loads(kind, restored(data))
    except (TypeError, ValueError):  # also values of another type, and bytes that are no text
        pass
    raise IndexStateError(
        f"The {kind.__name__} {key!r} of the index is damaged: it is not what was written. Restore the index from a "
        "copy, or index the corpus again."
    )


def damaged(connection: sqlite3.Connection, kind: type[Record]) -> list[str]:
    """The ids of records that are not what was written, or whose columns say something else than they do."""
    table, ids = table_of(kind), []
    names = ", ".join(("id", *table.columns, "data", "sum"))
    for row in connection.execute(f"SELECT {names} FROM {table.name}"):
        try:
            is_sound = table.row(record_of(kind, row[0], *row[-2:])) == row
        except IndexStateError:
            is_sound = False
        if not is_sound:
            ids.append(row[0] if isinstance(row[0], str) else repr(row[0]))
    return ids


def insert(connection: sqlite3.Connection, records: Iterable[Record]) -> None:
    """Records of any kinds, each into its table."""
    for kind, some in groupby(records, key=type):
        table = table_of(kind)
        connection.executemany(table.upsert(), map(table.row, some))


def replace(connection: sqlite3.Connection, table: Table, records: Iterable[Record]) -> None:
    """`records` become the only ones of the table, in this order.

    Its indexes are made behind them: to find a place in each for each of a million rows takes three times as long.
    """
    for column in table.columns:
        connection.execute(f"DROP INDEX IF EXISTS {table.name}_{column}")
    connection.execute(f"DELETE FROM {table.name}")
    connection.executemany(table.upsert(), map(table.row, records))
    for statement in table.indexes():
        connection.execute(statement)


def change(connection: sqlite3.Connection, table: Table, gone: Iterable[str], records: Iterable[Record]) -> None:
    """Remove the records `gone`, and put others in: those that are new come behind all that are there."""
    connection.executemany(f"DELETE FROM {table.name} WHERE id = ?", ((storable(id),) for id in gone))
    connection.executemany(table.upsert(), map(table.row, records))
