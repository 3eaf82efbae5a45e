"""Says which table of `index.db` holds which record, and by which columns records can be asked for.

`seq` numbers the records of a table in the order in which they were first added; `data` is the whole record as JSON.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

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
    Relationship,
    Summary,
)
from kraq_dspy.stores import results
from kraq_dspy.stores.codec import dumps, storable

Record = (
    Document | Chunk | Extraction | Entity | Relationship | Claim | Merge | Community | Summary | Question | Failure
)


@dataclass(frozen=True, slots=True)
class Table:
    """`key` is the attribute that identifies a record, `columns` are attributes that are copied out of the JSON."""

    name: str
    key: str = "id"
    columns: tuple[str, ...] = ()

    def id_of(self, record: Any) -> str:
        if isinstance(record, Failure):
            return results.failure_id(record.stage, record.item_id)
        return str(getattr(record, self.key))

    def row(self, record: Any) -> tuple[Any, ...]:
        values = (getattr(record, column) for column in self.columns)
        return (storable(self.id_of(record)), *map(column_value, values), storable(dumps(record)))

    @property
    def upsert(self) -> str:
        """An SQL statement for `row`. A record that is replaced keeps its place; an unchanged one is not written."""
        names = ("id", *self.columns, "data")
        changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
        marks = ", ".join("?" * len(names))
        return (
            f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({marks}) "
            f"ON CONFLICT (id) DO UPDATE SET {changes} WHERE {self.name}.data IS NOT excluded.data"
        )


TABLES: dict[type, Table] = {
    Document: Table("documents"),
    Chunk: Table("chunks", columns=("document_id",)),
    Extraction: Table("extractions", key="chunk_id"),
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


def column_value(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


def create(connection: sqlite3.Connection, schema_version: int) -> None:
    """All tables, in the transaction that is open."""
    for table in TABLES.values():
        columns = "".join(f", {column}" for column in table.columns)
        connection.execute(
            f"CREATE TABLE {table.name} (seq INTEGER PRIMARY KEY, id NOT NULL UNIQUE{columns}, data NOT NULL)"
        )
        for column in table.columns:
            connection.execute(f"CREATE INDEX {table.name}_{column} ON {table.name} ({column})")
    for statement in filter(str.strip, results.SCHEMA.split(";")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {schema_version}")


def check(connection: sqlite3.Connection, path: str) -> int:
    """The schema version of the database. Raises IndexStateError when a table is missing."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = sorted({table.name for table in TABLES.values()} - names)
    if missing:
        raise IndexStateError(
            f"{path!r} is damaged: it lacks the tables {', '.join(missing)}. "
            "Restore the folder from a copy, or delete it and index the corpus again."
        )
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def insert(connection: sqlite3.Connection, records: Iterable[Record]) -> None:
    """Records of any kinds, each into its table."""
    for kind, some in groupby(records, key=type):
        table = table_of(kind)
        connection.executemany(table.upsert, map(table.row, some))
