"""Stores pre-computed E(d|q): for each question, one row with the vectors of its passages (KRAQ paper, equation E_pre).

A look-up reads one row of one SQLite table, and of a long row only the vectors that are asked for.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store.codec import checksum
from kraq_dspy.asset.store.database import Database, translated_errors
from kraq_dspy.errors import EncoderMismatchError, IndexStateError
from kraq_dspy.ports import InstructedEmbedder, Vectors
from kraq_dspy.records import content_id

INSTRUCTED = "instructed.db"
Precision = Literal["float16", "int8"]

_SCHEMA_VERSION = 2
_PAGE_BYTES = 16384  # A vector of 1024 dimensions fills an eighth of it; small pages make long chains.
_KEY_BYTES = 16
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE rows (
    number INTEGER PRIMARY KEY,
    question BLOB NOT NULL UNIQUE,
    chunks BLOB NOT NULL,  -- 16 bytes each
    scales BLOB NOT NULL,  -- float32 each; empty for float16
    sums BLOB NOT NULL,    -- CRC-32 of each vector with its key and scale, 4 bytes each
    vectors BLOB NOT NULL  -- last, so that the others are read without it
);
"""


@dataclass(frozen=True, slots=True)
class InstructedRow:
    """E(d|q) of a question's passages: `vectors` is `[n_chunks, dimension]`, rows L2-normalised."""

    question_id: str
    chunk_ids: tuple[str, ...]
    vectors: Vectors


class InstructedStore(SharedByCopies):
    """Rows of pre-computed vectors. Safe for threads; readers see what is committed while one writer adds rows.

    `precision` "float16" keeps the clusters as they are (adjusted Rand index .994-1.0 against float32), "int8" halves
    the size again (.97-.996).
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
        self.precision: Precision = "int8" if meta["precision"] == "int8" else "float16"

    @classmethod
    def create(cls, path: Path | str, *, encoder_name: str, dimension: int, precision: Precision = "float16") -> Self:
        """Open a store for writing; it is made if it is not there.

        Raises EncoderMismatchError when the store that is there has vectors of another encoder or precision.
        """
        path = Path(path)
        if not path.exists():
            _initialise(path, encoder_name, dimension, precision)
        store = cls(path, Database(path, write=True))
        try:
            store._require(encoder_name)
            if store.precision != precision:
                raise EncoderMismatchError(
                    f"{str(path)!r} holds {store.precision} vectors, not {precision}. Go on with {store.precision}, or "
                    "delete the file and pre-compute again."
                )
        except EncoderMismatchError:
            store.close()
            raise
        return store

    @classmethod
    def open(cls, path: Path | str, *, embedder: InstructedEmbedder) -> Self:
        """Open a store for look-ups of what `embedder` made.

        Raises IndexStateError when nothing was pre-computed, EncoderMismatchError when another encoder did it; both
        say which command mends it.
        """
        path = Path(path)
        if not path.is_file():
            raise IndexStateError(
                f"{str(path.parent)!r} has no pre-computed embeddings. Run: kraq precompute {path.parent}"
            )
        store = cls(path, Database(path, write=False))
        try:
            store._require(embedder.name)
            if not store.questions():
                raise IndexStateError(
                    f"{str(path)!r} is empty: the pre-computation did not begin. Run: kraq precompute {path.parent}"
                )
        except IndexStateError:
            store.close()
            raise
        return store

    def __contains__(self, question_id: str) -> bool:
        with self._database.reading() as connection:
            row = connection.execute("SELECT 1 FROM rows WHERE question = ?", (_key(question_id),)).fetchone()
        return row is not None

    def questions(self) -> set[str]:
        """The ids of the questions that have a row."""
        with self._database.reading() as connection:
            return {key.hex() for (key,) in connection.execute("SELECT question FROM rows").fetchall()}

    @property
    def n_bytes(self) -> int:
        """The size of the files."""
        names = (self.path.name, f"{self.path.name}-wal")
        return sum(file.stat().st_size for name in names if (file := self.path.with_name(name)).exists())

    def bytes_per_pair(self) -> int:
        width = self.dimension + 4 if self.precision == "int8" else 2 * self.dimension
        return width + _KEY_BYTES

    def lookup(self, question_id: str, chunk_ids: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """E(d|q) of the chunks, float32 `[n_chunks, dimension]`, rows L2-normalised, and which of them were found.

        A chunk that was not found has a row of zeros; of a question that is not there none is found.
        """
        vectors = np.zeros((len(chunk_ids), self.dimension), dtype=np.float32)
        present = np.zeros(len(chunk_ids), dtype=np.bool_)
        with self._database.snapshot() as connection:  # both statements see one version of a row
            row = connection.execute(
                "SELECT number, chunks, scales, sums FROM rows WHERE question = ?", (key := _key(question_id),)
            ).fetchone()
            if row is None:
                return vectors, present
            number, stored, scales, sums = row
            places = [_place(stored, _key(chunk_id)) for chunk_id in chunk_ids]
            reads = sorted((place, i) for i, place in enumerate(places) if place is not None)
            width = self.dimension if self.precision == "int8" else 2 * self.dimension
            with connection.blobopen("rows", "vectors", number, readonly=True) as blob:
                for place, i in reads:
                    blob.seek(place * width)
                    content = blob.read(width)
                    if _sum(key, stored, scales, place, content) != sums[4 * place : 4 * place + 4]:
                        raise self._damaged()
                    vectors[i] = np.frombuffer(content, dtype=self.precision)
                    present[i] = True
        if self.precision == "int8":
            every = np.frombuffer(scales, dtype=np.float32)
            for place, i in reads:
                vectors[i] *= every[place]
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        norms[norms == 0] = 1
        vectors /= norms
        return vectors, present

    def holds(self, question_id: str, chunk_ids: Sequence[str]) -> NDArray[np.bool_]:
        """Which of the chunks are stored for the question; reads no vectors."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT chunks FROM rows WHERE question = ?", (_key(question_id),)).fetchone()
        stored = row[0] if row else b""
        return np.array([_place(stored, _key(chunk_id)) is not None for chunk_id in chunk_ids], dtype=np.bool_)

    def add(self, rows: Iterable[InstructedRow]) -> None:
        """Write rows in one transaction; a question that is there is replaced."""
        records = [self._record(row) for row in rows]
        with self._database.writing() as connection:
            connection.executemany(
                "INSERT INTO rows (question, chunks, scales, sums, vectors) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (question) DO UPDATE SET chunks = excluded.chunks, scales = excluded.scales, "
                "sums = excluded.sums, vectors = excluded.vectors",
                records,
            )

    def prune(self, keep: Collection[str]) -> int:
        """Delete the rows of all questions but `keep`; how many there were."""
        keys = {_key(question_id) for question_id in keep}
        with self._database.writing() as connection:
            stored = [key for (key,) in connection.execute("SELECT question FROM rows")]
            gone = [(key,) for key in stored if key not in keys]
            connection.executemany("DELETE FROM rows WHERE question = ?", gone)
        return len(gone)

    def forget(self, chunk_ids: Collection[str]) -> None:
        """The vectors of these chunks go; those of others stay, of the same questions too."""
        gone = {_key(chunk_id) for chunk_id in chunk_ids}
        with self._database.writing() as connection:
            rows = connection.execute("SELECT number, question, chunks FROM rows").fetchall()
            for number, question, chunks in rows:
                keys = [chunks[at : at + _KEY_BYTES] for at in range(0, len(chunks), _KEY_BYTES)]
                kept = [place for place, key in enumerate(keys) if key not in gone]
                if len(kept) == len(keys):
                    continue
                scales, sums, vectors = connection.execute(
                    "SELECT scales, sums, vectors FROM rows WHERE number = ?", (number,)
                ).fetchone()
                parts = [_picked(content, len(keys), kept) for content in (chunks, scales, sums, vectors)]
                connection.execute(
                    "INSERT OR REPLACE INTO rows (question, chunks, scales, sums, vectors) VALUES (?, ?, ?, ?, ?)",
                    (question, *parts),
                )

    def close(self) -> None:
        self._database.close()

    def _require(self, encoder_name: str) -> None:
        if self.encoder_name != encoder_name:
            raise EncoderMismatchError(
                f"{str(self.path)!r} was pre-computed with {self.encoder_name!r}, and this encoder is "
                f"{encoder_name!r}. Use that encoder, or delete the file and run: kraq precompute {self.path.parent}"
            )

    def damage(self) -> list[str]:
        """What is wrong with the file, read in full; nothing when it is sound."""
        if faults := self._database.damage():
            return faults
        width = self.dimension if self.precision == "int8" else 2 * self.dimension
        with self._database.reading() as connection:
            for key, stored, scales, sums, vectors in connection.execute(
                "SELECT question, chunks, scales, sums, vectors FROM rows"
            ):
                rows = range(len(stored) // _KEY_BYTES)
                made = (_sum(key, stored, scales, row, vectors[row * width : (row + 1) * width]) for row in rows)
                if len(vectors) != width * len(rows) or b"".join(made) != sums:
                    faults.append(f"the embeddings seen from the question {key.hex()} are not what was written")
        return faults

    def _damaged(self) -> IndexStateError:
        return IndexStateError(
            f"{str(self.path)!r} is damaged: an embedding in it is not what was written. Delete the file and run: "
            f"kraq precompute {self.path.parent}"
        )

    def _record(self, row: InstructedRow) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        expected = (len(row.chunk_ids), self.dimension)
        if row.vectors.shape != expected:
            raise ValueError(f"The vectors of {row.question_id!r} are {row.vectors.shape}; expected {expected}.")
        key, keys = _key(row.question_id), b"".join(map(_key, row.chunk_ids))
        if self.precision == "float16":
            scales, vectors = b"", list(row.vectors.astype(np.float16))
        else:
            steps = np.abs(row.vectors).max(axis=1, initial=0).astype(np.float32) / 127
            scales = steps.tobytes()
            vectors = list(np.rint(row.vectors / np.where(steps == 0, 1, steps)[:, None]).astype(np.int8))
        contents = [vector.tobytes() for vector in vectors]
        sums = (_sum(key, keys, scales, place, content) for place, content in enumerate(contents))
        return key, keys, scales, b"".join(sums), b"".join(contents)


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


def _initialise(path: Path, encoder_name: str, dimension: int, precision: Precision) -> None:
    """A killed `create` leaves a file beside the path, never a half-made store."""
    with translated_errors(path), replaced(path) as draft, closing(sqlite3.connect(draft)) as connection:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.executescript(_SCHEMA)
        meta = {
            "schema_version": str(_SCHEMA_VERSION),
            "encoder_name": encoder_name,
            "dimension": str(dimension),
            "precision": precision,
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


def _sum(question: bytes, chunks: bytes, scales: bytes, place: int, vector: bytes) -> bytes:
    """The checksum of one vector of a row, with what it belongs to."""
    own = chunks[place * _KEY_BYTES : (place + 1) * _KEY_BYTES], scales[4 * place : 4 * place + 4], vector
    return checksum(question, *own).to_bytes(4, "little")


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
