"""Keeps the tables of `catalogue.db`: entries as they are, and every version they had.

The rules of a catalogue (what is a conflict, what may be approved) are those of `catalogue/store.py`.
"""

import dataclasses
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kraq_dspy.asset.store.codec import checksum, dumps, loads, restored, storable
from kraq_dspy.asset.store.database import Database
from kraq_dspy.errors import IndexStateError
from kraq_dspy.records import CatalogueEntry

SCHEMA_VERSION = 2

_SCHEMA = (
    # AUTOINCREMENT: the number of an entry that was removed is not given to another one
    "CREATE TABLE entries"
    " (number INTEGER PRIMARY KEY AUTOINCREMENT, key NOT NULL UNIQUE, status NOT NULL, data NOT NULL,"
    " sum NOT NULL)",
    "CREATE INDEX entries_status ON entries (status)",
    "CREATE TABLE history"
    " (revision INTEGER PRIMARY KEY, number NOT NULL, action NOT NULL, data NOT NULL, sum NOT NULL)",
    "CREATE INDEX history_number ON history (number)",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


class EntryReader:
    """Entries by number, or by the key of their question, over one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, number: int) -> CatalogueEntry | None:
        return next(self._entries("SELECT key, status, data, sum FROM entries WHERE number = ?", number), None)

    def find(self, key: str) -> CatalogueEntry | None:
        return next(self._entries("SELECT key, status, data, sum FROM entries WHERE key = ?", storable(key)), None)

    def all(self, status: str | None = None) -> list[CatalogueEntry]:
        """Those of a status, or all, by number."""
        sql = "SELECT key, status, data, sum FROM entries WHERE ? IS NULL OR status = ? ORDER BY number"
        return list(self._entries(sql, status, status))

    def counts(self) -> dict[str, int]:
        """By status; none for a status without entries."""
        return dict(self._connection.execute("SELECT status, count(*) FROM entries GROUP BY status").fetchall())

    def keys(self) -> set[str]:
        return {restored(key) for (key,) in self._connection.execute("SELECT key FROM entries").fetchall()}

    def every_version(self) -> list[CatalogueEntry]:
        return [_entry(*row) for row in self._connection.execute("SELECT number, action, data, sum FROM history")]

    def removed(self) -> list[CatalogueEntry]:
        return list(self._entries("SELECT number, action, data, sum FROM history WHERE action = 'removed'"))

    def history(self, number: int) -> list[tuple[str, CatalogueEntry]]:
        """(action, version), oldest first."""
        rows = self._connection.execute(
            "SELECT number, action, data, sum FROM history WHERE number = ? ORDER BY revision", (number,)
        ).fetchall()
        return [(row[1], _entry(*row)) for row in rows]

    def revision(self) -> int:
        """Grows with every change."""
        return int(self._connection.execute("SELECT coalesce(max(revision), 0) FROM history").fetchone()[0])

    def changed_since(self, revision: int) -> dict[int, CatalogueEntry | None]:
        """Entries with a version after `revision` by number; None for those that are gone."""
        numbers = self._connection.execute(
            "SELECT DISTINCT number FROM history WHERE revision > ?", (revision,)
        ).fetchall()
        sql = (
            "SELECT key, status, data, sum FROM entries WHERE number IN (SELECT number FROM history WHERE revision > ?)"
        )
        entries = {entry.number: entry for entry in self._entries(sql, revision)}
        return {number: entries.get(number) for (number,) in numbers}

    def _entries(self, sql: str, *values: Any) -> Iterator[CatalogueEntry]:
        return (_entry(*row) for row in self._connection.execute(sql, values).fetchall())


class EntryWriter(EntryReader):
    """Changes within one transaction; every change but `rewrite` is a version in the history."""

    def insert(self, entry: CatalogueEntry, key: str, action: str, by: str) -> CatalogueEntry:
        """The entry with the number that it got."""
        cursor = self._connection.execute(
            "INSERT INTO entries (key, status, data, sum) VALUES (?, ?, '', 0)", (storable(key), entry.status)
        )
        entry = dataclasses.replace(entry, number=int(cursor.lastrowid or 0), changed_at=_now(), changed_by=by)
        self.rewrite(entry)
        self._record(action, entry)
        return entry

    def update(self, old: CatalogueEntry, action: str, by: str, **fields: Any) -> CatalogueEntry:
        entry = dataclasses.replace(old, **fields, version=old.version + 1, changed_at=_now(), changed_by=by)
        self.rewrite(entry)
        self._record(action, entry)
        return entry

    def rewrite(self, entry: CatalogueEntry) -> None:
        [key] = self._connection.execute("SELECT key FROM entries WHERE number = ?", (entry.number,)).fetchone()
        data = storable(dumps(entry))
        self._connection.execute(
            "UPDATE entries SET status = ?, data = ?, sum = ? WHERE number = ?",
            (entry.status, data, checksum(key, entry.status, data), entry.number),
        )

    def remove(self, entry: CatalogueEntry, by: str) -> None:
        """Nothing stays but the question, which says what is not to be added again."""
        self._connection.execute("DELETE FROM entries WHERE number = ?", (entry.number,))
        bare = dataclasses.replace(entry, answer="", given="", evidence=(), changed_at=_now(), changed_by=by)
        self._record("removed", bare)  # before its past goes: a revision that was read must not be given again
        self._connection.execute("DELETE FROM history WHERE number = ? AND action <> 'removed'", (entry.number,))

    def _record(self, action: str, entry: CatalogueEntry) -> None:
        data = storable(dumps(entry))
        self._connection.execute(
            "INSERT INTO history (number, action, data, sum) VALUES (?, ?, ?, ?)",
            (entry.number, action, data, checksum(str(entry.number), action, data)),
        )


class EntryTable:
    """The file, made where there is none. Safe for threads and for several processes."""

    def __init__(self, path: Path, *, write: bool = True) -> None:
        """Raises IndexStateError for a file that is damaged or of a newer version."""
        self._database = Database(path, write=write)
        try:
            with self._database.reading() as connection:
                [version] = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, SCHEMA_VERSION):
                raise IndexStateError(
                    f"{str(path)!r} is a catalogue of version {version}, and this library reads {SCHEMA_VERSION}. "
                    "Open it with the version of kraq-dspy that wrote it."
                )
            if version == 0:
                self._create()
        except BaseException:
            self._database.close()
            raise

    @property
    def writable(self) -> bool:
        return self._database.write

    @contextmanager
    def reading(self) -> Iterator[EntryReader]:
        """What is read in the block is of one moment."""
        with self._database.snapshot() as connection:
            yield EntryReader(connection)

    @contextmanager
    def writing(self) -> Iterator[EntryWriter]:
        """One transaction."""
        with self._database.writing() as connection:
            yield EntryWriter(connection)

    def damage(self) -> list[str]:
        """What is wrong with the file, which is read in full; nothing when it is sound."""
        if faults := self._database.damage():
            return faults
        try:
            with self.reading() as entries:
                entries.all()
                entries.every_version()
        except IndexStateError as error:
            return [str(error)]
        return []

    def close(self) -> None:
        self._database.close()

    def _create(self) -> None:
        with self._database.writing() as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # another process may have been quicker
                for statement in _SCHEMA:
                    connection.execute(statement)


def _entry(first: Any, second: Any, data: str | bytes, stored_sum: int) -> CatalogueEntry:
    """The entry of a row, which was written with the two values before it. Raises IndexStateError for damage."""
    try:
        values = (one if isinstance(one, (str, bytes)) else str(one) for one in (first, second, data))
        if checksum(*values) == stored_sum:
            return loads(CatalogueEntry, restored(data))
    except ValueError:  # bytes that are no text
        pass
    raise IndexStateError(
        "An entry of the catalogue is damaged: it is not what was written. Restore catalogue.db from a copy."
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
