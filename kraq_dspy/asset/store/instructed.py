"""Stores vectors of passages as rows of one table: E(d|q) by question, or a passage's sentences by passage.

E(d|q) is what an encoder makes of question and passage together (KRAQ paper, equation E_pre): a row for each question
has the vectors of its passages. What a question's weights make of a passage's sentences needs no question stored: a row
for each passage has the vectors of its sentences. A look-up reads one row.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store import access
from kraq_dspy.asset.store.codec import checksum
from kraq_dspy.asset.store.database import Database, translated_errors
from kraq_dspy.asset.store.vectors.points import unit_rows
from kraq_dspy.errors import EncoderMismatchError, IndexStateError
from kraq_dspy.ports import Vectors
from kraq_dspy.records import content_id

INSTRUCTED = "instructed.db"

_SCHEMA_VERSION = 4
_PAGE_BYTES = 16384  # A vector of 1024 dimensions fills an eighth of it; small pages make long chains.
_KEY_BYTES = 16
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE rows (
    owner BLOB PRIMARY KEY,
    parts BLOB NOT NULL,   -- 16 bytes each
    sum INTEGER NOT NULL,  -- CRC-32 of all others
    vectors BLOB NOT NULL  -- float16; last, so that the others are read without it
);
"""
_PUT = "INSERT OR REPLACE INTO rows (owner, parts, sum, vectors) VALUES (?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class InstructedRow:
    """The vectors of an owner's parts, `[n_parts, dimension]`, rows L2-normalised: of a question its passages."""

    owner_id: str
    part_ids: tuple[str, ...]
    vectors: Vectors


class InstructedStore(SharedByCopies):
    """Rows of vectors as float16, which keeps the clusters as they are (adjusted Rand index .994-1.0 against float32).

    Safe for threads; readers see what is committed while one writer adds rows.
    """

    def __init__(self, path: Path, database: Database) -> None:
        """Use `InstructedStore.create` or `InstructedStore.open`."""
        self.path = path
        self._database = database
        with database.reading() as connection:
            meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        is_sound = meta.pop("sum", "") == _sum_of(meta)
        if not is_sound or meta["schema_version"] != str(_SCHEMA_VERSION):
            database.close()
            raise IndexStateError(
                f"{str(path)!r} is damaged, or of another version than this library reads ({_SCHEMA_VERSION}). "
                f"Delete it and run: kraq precompute {path.parent}"
            )
        self.encoder_name: str = meta["encoder_name"]
        self.dimension = int(meta["dimension"])

    @classmethod
    def create(cls, path: Path | str, *, encoder_name: str, dimension: int) -> Self:
        """Open a store for writing; it is made if it is not there.

        Raises EncoderMismatchError when the store that is there has vectors of another encoder.
        """
        path = Path(path)
        if not path.exists():
            _initialise(path, encoder_name, dimension)
            access.follow_index(path)
        return cls(path, Database(path, write=True))._required(encoder_name)

    @classmethod
    def open(cls, path: Path | str, *, encoder_name: str) -> Self:
        """Open a store for look-ups of what the encoder of this name made.

        Raises IndexStateError when nothing was pre-computed, EncoderMismatchError when another encoder did it; both
        say which command mends it.
        """
        path = Path(path)
        if not path.is_file():
            raise IndexStateError(
                f"{str(path.parent)!r} has no pre-computed embeddings. Run: kraq precompute {path.parent}"
            )

        store = cls(path, Database(path, write=False))._required(encoder_name)
        if not store.owners():
            store.close()
            raise IndexStateError(
                f"{str(path)!r} is empty: the pre-computation did not begin. Run: kraq precompute {path.parent}"
            )
        return store

    def _required(self, encoder_name: str) -> Self:
        if self.encoder_name == encoder_name:
            return self
        self.close()
        raise EncoderMismatchError(
            f"{str(self.path)!r} was pre-computed with {self.encoder_name!r}, and this encoder is {encoder_name!r}. "
            f"Use that encoder, or delete the file and run: kraq precompute {self.path.parent}"
        )

    def owners(self) -> set[str]:
        """The ids of those that have a row."""
        with self._database.reading() as connection:
            return {key.hex() for (key,) in connection.execute("SELECT owner FROM rows").fetchall()}

    @property
    def n_bytes(self) -> int:
        """The size of the files."""
        names = (self.path.name, f"{self.path.name}-wal")
        return sum(file.stat().st_size for name in names if (file := self.path.with_name(name)).exists())

    def lookup(self, owner_id: str, part_ids: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """The vectors of the parts, float32 `[n_parts, dimension]`, rows L2-normalised, and which of them were found.

        A part that was not found has a row of zeros; of an owner that is not there none is found.
        """
        keys, stored = self._row(owner_id) or ([], np.zeros((0, self.dimension), np.float32))
        place_of = {key: place for place, key in enumerate(keys)}
        places = np.array([place_of.get(_key(part_id), -1) for part_id in part_ids], dtype=np.int64)
        present = places >= 0
        vectors = np.zeros((len(part_ids), self.dimension), dtype=np.float32)
        vectors[present] = stored[places[present]]
        return unit_rows(vectors), present

    def whole(self, owner_id: str) -> Vectors | None:
        """All vectors of an owner, float32 `[n_parts, dimension]`, rows L2-normalised; None if it has no row."""
        row = self._row(owner_id)
        return None if row is None else unit_rows(row[1])

    def part(self, owner_id: str, passage_ids: Collection[str]) -> InstructedRow:
        """The row of an owner with none but these passages: of a question those of its passages, of a passage that is
        one of these all its sentences. Raises KeyError if it has no row."""
        row = self._row(owner_id)
        if row is None:
            raise KeyError(owner_id)
        keys, vectors = row
        if owner_id in passage_ids:
            return InstructedRow(owner_id, tuple(key.hex() for key in keys), vectors)
        allowed = set(map(_key, passage_ids))
        places = [place for place, key in enumerate(keys) if key in allowed]
        return InstructedRow(owner_id, tuple(keys[place].hex() for place in places), vectors[places])

    def _row(self, owner_id: str) -> tuple[list[bytes], Vectors] | None:
        """The keys of an owner's parts, and their vectors as they are kept; None if it has no row."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT owner, parts, sum, vectors FROM rows WHERE owner = ?", (_key(owner_id),)
            ).fetchone()
        return None if row is None else self._read(*row)

    def _read(self, owner: bytes, parts: bytes, stored_sum: int, vectors: bytes) -> tuple[list[bytes], Vectors]:
        keys = _keys(parts)
        if checksum(owner, parts, vectors) != stored_sum or len(vectors) != 2 * self.dimension * len(keys):
            raise IndexStateError(
                f"{str(self.path)!r} is damaged: the embeddings of {owner.hex()} are not what was written. Delete the "
                f"file and run: kraq precompute {self.path.parent}"
            )
        return keys, np.frombuffer(vectors, dtype=np.float16).astype(np.float32).reshape(len(keys), self.dimension)

    def holds(self, owner_id: str, part_ids: Sequence[str]) -> NDArray[np.bool_]:
        """Tell which of the parts are stored for the owner; reads no vectors."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT parts FROM rows WHERE owner = ?", (_key(owner_id),)).fetchone()
        stored = set(_keys(row[0])) if row else set()
        return np.array([_key(part_id) in stored for part_id in part_ids], dtype=np.bool_)

    def add(self, rows: Iterable[InstructedRow]) -> None:
        """Write rows in one transaction; an owner that is there is replaced."""
        records = []
        for row in rows:
            if row.vectors.shape != (expected := (len(row.part_ids), self.dimension)):
                raise ValueError(f"The vectors of {row.owner_id!r} are {row.vectors.shape}; expected {expected}.")
            records.append(_record(_key(row.owner_id), map(_key, row.part_ids), row.vectors))
        with self._database.writing() as connection:
            connection.executemany(_PUT, records)

    def prune(self, keep: Collection[str]) -> int:
        """Delete the rows of all owners but `keep`; how many there were."""
        keys = {_key(owner_id) for owner_id in keep}
        with self._database.writing() as connection:
            stored = [key for (key,) in connection.execute("SELECT owner FROM rows")]
            gone = [(key,) for key in stored if key not in keys]
            connection.executemany("DELETE FROM rows WHERE owner = ?", gone)
        return len(gone)

    def forget(self, chunk_ids: Collection[str]) -> None:
        """The vectors of these passages go, and the rows that are theirs; other vectors stay, of the same rows too."""
        gone = {_key(chunk_id) for chunk_id in chunk_ids}
        with self._database.writing() as connection:
            connection.executemany("DELETE FROM rows WHERE owner = ?", [(key,) for key in gone])
            owners = connection.execute("SELECT owner, parts FROM rows").fetchall()
            for owner in (owner for owner, parts in owners if not gone.isdisjoint(_keys(parts))):
                row = connection.execute("SELECT owner, parts, sum, vectors FROM rows WHERE owner = ?", (owner,))
                keys, vectors = self._read(*row.fetchone())
                remaining = [place for place, key in enumerate(keys) if key not in gone]
                connection.execute(_PUT, _record(owner, (keys[place] for place in remaining), vectors[remaining]))

    def close(self) -> None:
        self._database.close()

    def damage(self) -> list[str]:
        """Return what is wrong with the file, read in full; nothing when it is sound."""
        if faults := self._database.damage():
            return faults
        with self._database.reading() as connection:
            for row in connection.execute("SELECT owner, parts, sum, vectors FROM rows"):
                try:
                    self._read(*row)
                except IndexStateError as error:
                    faults.append(str(error))
        return faults


@contextmanager
def any_instructed(path: Path, *, write: bool = False) -> Iterator[InstructedStore]:
    """The store at `path`, whatever encoder made it."""
    with closing(InstructedStore(path, Database(path, write=write))) as store:
        yield store


def forget_chunks(path: Path, chunk_ids: Collection[str]) -> None:
    """Do as `InstructedStore.forget` does, in the store at `path`, if there is one."""
    if path.exists():
        with any_instructed(path, write=True) as store:
            store.forget(chunk_ids)


def _initialise(path: Path, encoder_name: str, dimension: int) -> None:
    """A killed `create` leaves a file beside the path, never a half-made store."""
    with translated_errors(path), replaced(path) as draft, closing(sqlite3.connect(draft)) as connection:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.executescript(_SCHEMA)
        meta = {"schema_version": str(_SCHEMA_VERSION), "encoder_name": encoder_name, "dimension": str(dimension)}
        connection.executemany("INSERT INTO meta VALUES (?, ?)", {**meta, "sum": _sum_of(meta)}.items())
        connection.commit()


def _sum_of(meta: dict[str, str]) -> str:
    return str(checksum(*(part for item in sorted(meta.items()) for part in item)))


def _key(record_id: str) -> bytes:
    """Ids are 32 hexadecimal digits; those that another system made are hashed to as much."""
    try:
        key = bytes.fromhex(record_id)
    except ValueError:
        key = b""
    return key if len(key) == _KEY_BYTES else bytes.fromhex(content_id(record_id))


def _keys(parts: bytes) -> list[bytes]:
    return [parts[start : start + _KEY_BYTES] for start in range(0, len(parts), _KEY_BYTES)]


def _record(owner: bytes, keys: Iterable[bytes], vectors: Vectors) -> tuple[bytes, bytes, int, bytes]:
    parts, content = b"".join(keys), vectors.astype(np.float16).tobytes()
    return owner, parts, checksum(owner, parts, content), content
