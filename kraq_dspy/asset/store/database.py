"""Opens one SQLite file for many readers and one writer, in any number of threads.

Write-ahead log: readers see what is committed and never wait for the writer. `synchronous=NORMAL`: a killed process
loses nothing that was committed, a power cut may lose the last transactions but tears none.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store.own_files import require_descriptors, require_own_file, require_unshared
from kraq_dspy.errors import IndexStateError

_BUSY_MS = 30_000


class Database:
    """`write=False` opens for reading alone; then `writing()` raises IndexStateError. A `constant` file is one that
    nobody changes: it is read without locks, and without files beside it."""

    def __init__(self, path: Path, *, write: bool = True, constant: bool = False) -> None:
        self.path = path
        self.write = write
        self.constant = constant
        self._closed = False
        self._write_lock = threading.RLock()
        self._pool_lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._lent: set[sqlite3.Connection] = set()
        self._connections: list[sqlite3.Connection] = []
        require_own_file(path)
        if write:
            require_unshared(path)
        if not write and not path.is_file():
            raise IndexStateError(f"There is no database {str(path)!r}; the index is damaged. Index the corpus again.")

        with translated_errors(path):
            self._writer = self._connect(write=True) if write else None
            with self.reading() as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading, lent to one caller at a time."""
        self._check_open()
        with translated_errors(self.path):
            with self._pool_lock:
                connection = self._idle.pop() if self._idle else None

            connection = connection or self._connect(write=False)
            self._lend(connection)
            try:
                yield connection
            finally:
                with self._pool_lock:
                    self._lent.discard(connection)
                    if self._closed:
                        connection.close()
                    else:
                        self._idle.append(connection)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection as of `reading`; all statements of the block see the file at one moment."""
        with self.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of the block, or, when it raises, nothing. Other threads' writes wait for it."""
        self._check_open()
        if self._writer is None:
            raise IndexStateError(
                f"{str(self.path.parent)!r} was opened for reading. To change it: Index.open(path, write=True)."
            )

        with self._write_lock, translated_errors(self.path):
            if self._writer.in_transaction:  # a record source that writes while it is being written
                raise IndexStateError("This thread is already in the middle of a write to the index.")
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:  # SQLite itself rolls back when the disk is full
                    self._writer.execute("ROLLBACK")
                raise

    def stand_alone(self, *, erase: bool = False) -> None:
        """Bring the log into the file, for others to read it without one. Nothing may be written meanwhile.

        `erase` rewrites the file, since pages may still hold rows that SQLite has moved elsewhere,
        even after it overwrote the rows there.
        """
        with self._write_lock, translated_errors(self.path):
            assert self._writer is not None
            self._writer.execute("PRAGMA busy_timeout=1000")
            busy, _, _ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy or erase:  # somebody reads what an earlier part of the log says; a copy has no log
                with replaced(self.path) as draft:
                    self._writer.execute("VACUUM INTO ?", (str(draft),))

    def erase(self) -> None:
        """Write the file anew in its place, and empty the log: nothing is left of what was deleted."""
        self._check_open()
        with self._write_lock, translated_errors(self.path):
            assert self._writer is not None
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong with the file, read anew; nothing when it is sound."""
        try:
            faults = [fault for (fault,) in self._connect(write=False).execute("PRAGMA quick_check").fetchall()]
        except sqlite3.DatabaseError as error:
            return [str(error)]
        return [] if faults == ["ok"] else faults

    def close(self) -> None:
        """May be called twice. Waits for a write that is under way; readers under way get IndexStateError, and close
        their connections themselves: to close one in whose statement another thread is kills the process."""
        with self._write_lock, self._pool_lock:
            self._closed = True
            for connection in reversed(self._connections):  # the one that writes is the last: it empties the log
                if connection in self._lent:
                    connection.interrupt()
                else:
                    connection.close()
            self._connections.clear()
            self._idle.clear()

    def _lend(self, connection: sqlite3.Connection) -> None:
        with self._pool_lock:
            if not self._closed:
                self._lent.add(connection)
                return
            connection.close()
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise IndexStateError(f"The index {str(self.path.parent)!r} was closed. Open it again: Index.open(path).")

    def _connect(self, *, write: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._uri(), uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_MS / 1000
        )
        with self._pool_lock:
            self._connections.append(connection)

        if write:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA secure_delete=ON")  # what is deleted leaves zeros and no text
        else:
            connection.execute("PRAGMA query_only=ON")
        return connection

    def _uri(self) -> str:
        # A reader of a write-ahead log needs to write its shared memory file; where it cannot, and no log is left over,
        # the database is as constant as the medium it lies on.
        if self.constant:
            return f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
        if self.write or os.access(self.path.parent, os.W_OK):
            return self.path.absolute().as_uri()
        log = self.path.with_name(self.path.name + "-wal")
        constant = "&immutable=1" if not log.exists() or log.stat().st_size == 0 else ""
        return f"{self.path.absolute().as_uri()}?mode=ro{constant}"


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """SQLite's errors become IndexStateError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        require_descriptors()
        raise IndexStateError(f"{str(path)!r}: {error}. {_advice(error)}") from error


def _advice(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", None) or ""
    if name.startswith("SQLITE_FULL"):
        return "The disk is full: free some space and go on; what was committed before is kept."
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return "The database is damaged: restore the folder from a copy, or index the corpus again."
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_PERM")):
        return "Check that the folder exists, can be written and has space left; what was committed is kept."
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "Another program has the database open for writing; close it and try again."

    is_closed = isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error)
    if is_closed or name == "SQLITE_INTERRUPT":
        return "The index was closed while it was being read."
    return "The index may be of another version or damaged; if a retry does not help, index the corpus again."
