"""Stores vectors of passages as rows of one table: E(d|q) by question, or a passage's sentences by passage.

E(d|q) is what an encoder makes of question and passage together (KRAQ paper, equation E_pre): a row for each question
has the vectors of its passages. What a question's weights make of a passage's sentences needs no question stored: a row
for each passage has the vectors of its sentences. A look-up reads one row, and of a long row only the vectors that are
asked for.
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
from kraq_dspy.asset.store.codec import checksum
from kraq_dspy.asset.store.database import Database, translated_errors
from kraq_dspy.errors import EncoderMismatchError, IndexStateError
from kraq_dspy.ports import Vectors
from kraq_dspy.records import content_id

INSTRUCTED = "instructed.db"

_SCHEMA_VERSION = 3
_PAGE_BYTES = 16384  # A vector of 1024 dimensions fills an eighth of it; small pages make long chains.
_KEY_BYTES = 16
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE rows (
    number INTEGER PRIMARY KEY,
    owner BLOB NOT NULL UNIQUE,
    parts BLOB NOT NULL,   -- 16 bytes each
    sums BLOB NOT NULL,    -- CRC-32 of each vector with its keys, 4 bytes each
    vectors BLOB NOT NULL  -- float16; last, so that the others are read without it
);
"""


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
        vectors = np.zeros((len(part_ids), self.dimension), dtype=np.float32)
        present = np.zeros(len(part_ids), dtype=np.bool_)
        key, width = _key(owner_id), 2 * self.dimension
        with self._database.snapshot() as connection:  # both statements see one version of a row
            row = connection.execute("SELECT number, parts, sums FROM rows WHERE owner = ?", (key,)).fetchone()
            if row is None:
                return vectors, present
            number, stored, sums = row
            places = [_place(stored, _key(part_id)) for part_id in part_ids]
            with connection.blobopen("rows", "vectors", number, readonly=True) as blob:
                for place, i in sorted((place, i) for i, place in enumerate(places) if place is not None):
                    blob.seek(place * width)
                    vectors[i] = self._sound(blob.read(width), key, stored, sums, place)
                    present[i] = True
        return _unit(vectors), present

    def whole(self, owner_id: str) -> Vectors | None:
        """All vectors of an owner, float32 `[n_parts, dimension]`, rows L2-normalised; None where it has no row."""
        key, width = _key(owner_id), 2 * self.dimension
        with self._database.reading() as connection:
            row = connection.execute("SELECT parts, sums, vectors FROM rows WHERE owner = ?", (key,)).fetchone()
        if row is None:
            return None
        stored, sums, content = row
        places = range(len(stored) // _KEY_BYTES)
        rows = (content[place * width : (place + 1) * width] for place in places)
        sound = [self._sound(part, key, stored, sums, place) for place, part in zip(places, rows, strict=True)]
        return _unit(np.array(sound, np.float32).reshape(-1, self.dimension))

    def _sound(self, content: bytes, owner: bytes, parts: bytes, sums: bytes, place: int) -> Vectors:
        if _sum(owner, parts, place, content) != sums[4 * place : 4 * place + 4]:
            raise IndexStateError(
                f"{str(self.path)!r} is damaged: an embedding in it is not what was written. Delete the file and run: "
                f"kraq precompute {self.path.parent}"
            )
        return np.frombuffer(content, dtype=np.float16).astype(np.float32)

    def holds(self, owner_id: str, part_ids: Sequence[str]) -> NDArray[np.bool_]:
        """Which of the parts are stored for the owner; reads no vectors."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT parts FROM rows WHERE owner = ?", (_key(owner_id),)).fetchone()
        stored = row[0] if row else b""
        return np.array([_place(stored, _key(part_id)) is not None for part_id in part_ids], dtype=np.bool_)

    def add(self, rows: Iterable[InstructedRow]) -> None:
        """Write rows in one transaction; an owner that is there is replaced."""
        records = [self._record(row) for row in rows]
        with self._database.writing() as connection:
            connection.executemany(
                "INSERT INTO rows (owner, parts, sums, vectors) VALUES (?, ?, ?, ?) ON CONFLICT (owner) DO UPDATE "
                "SET parts = excluded.parts, sums = excluded.sums, vectors = excluded.vectors",
                records,
            )

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
            rows = connection.execute("SELECT owner, parts FROM rows").fetchall()
            for owner, parts in rows:
                keys = [parts[at : at + _KEY_BYTES] for at in range(0, len(parts), _KEY_BYTES)]
                kept = [place for place, key in enumerate(keys) if key not in gone]
                if len(kept) == len(keys):
                    continue
                contents = connection.execute(
                    "SELECT parts, sums, vectors FROM rows WHERE owner = ?", (owner,)
                ).fetchone()
                picked = [_picked(content, len(keys), kept) for content in contents]
                connection.execute(
                    "INSERT OR REPLACE INTO rows (owner, parts, sums, vectors) VALUES (?, ?, ?, ?)", (owner, *picked)
                )

    def close(self) -> None:
        self._database.close()

    def damage(self) -> list[str]:
        """What is wrong with the file, read in full; nothing when it is sound."""
        if faults := self._database.damage():
            return faults
        width = 2 * self.dimension
        with self._database.reading() as connection:
            for key, stored, sums, vectors in connection.execute("SELECT owner, parts, sums, vectors FROM rows"):
                rows = range(len(stored) // _KEY_BYTES)
                made = (_sum(key, stored, row, vectors[row * width : (row + 1) * width]) for row in rows)
                if len(vectors) != width * len(rows) or b"".join(made) != sums:
                    faults.append(f"the vectors of {key.hex()} are not what was written")
        return faults

    def _record(self, row: InstructedRow) -> tuple[bytes, bytes, bytes, bytes]:
        expected = (len(row.part_ids), self.dimension)
        if row.vectors.shape != expected:
            raise ValueError(f"The vectors of {row.owner_id!r} are {row.vectors.shape}; expected {expected}.")
        key, keys = _key(row.owner_id), b"".join(map(_key, row.part_ids))
        contents = [vector.tobytes() for vector in row.vectors.astype(np.float16)]
        sums = (_sum(key, keys, place, content) for place, content in enumerate(contents))
        return key, keys, b"".join(sums), b"".join(contents)


@contextmanager
def any_instructed(path: Path, *, write: bool = False) -> Iterator[InstructedStore]:
    """The store at `path`, whatever encoder made it."""
    with closing(InstructedStore(path, Database(path, write=write))) as store:
        yield store


def forget_chunks(path: Path, chunk_ids: Collection[str]) -> None:
    """As `InstructedStore.forget`, in the store at `path`, where there is one."""
    if path.exists():
        with any_instructed(path, write=True) as store:
            store.forget(chunk_ids)


def _initialise(path: Path, encoder_name: str, dimension: int) -> None:
    """A killed `create` leaves a file beside the path, never a half-made store."""
    with translated_errors(path), replaced(path) as draft, closing(sqlite3.connect(draft)) as connection:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.executescript(_SCHEMA)
        meta = {
            "schema_version": str(_SCHEMA_VERSION),
            "encoder_name": encoder_name,
            "dimension": str(dimension),
        }
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


def _sum(owner: bytes, parts: bytes, place: int, vector: bytes) -> bytes:
    """The checksum of one vector of a row, with what it belongs to."""
    return checksum(owner, parts[place * _KEY_BYTES : (place + 1) * _KEY_BYTES], vector).to_bytes(4, "little")


def _unit(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    norms[norms == 0] = 1
    unit: Vectors = vectors / norms
    return unit


def _picked(content: bytes, n_parts: int, places: Sequence[int]) -> bytes:
    """Some of the parts that the content consists of, which are of one length."""
    width = len(content) // max(1, n_parts)
    return b"".join(content[place * width : (place + 1) * width] for place in places)


def _place(stored: bytes, key: bytes) -> int | None:
    """Which of the 16-byte keys it is."""
    at = stored.find(key)
    while at >= 0 and at % _KEY_BYTES:
        at = stored.find(key, at + 1)
    return at // _KEY_BYTES if at >= 0 else None
