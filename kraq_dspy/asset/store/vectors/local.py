"""Keeps vectors and words in the index folder: one file for search, and beside it what was written since."""

import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.turns import IN_TURN
from kraq_dspy.asset.store.database import Database
from kraq_dspy.asset.store.states import writing_to
from kraq_dspy.asset.store.sync import batches
from kraq_dspy.asset.store.vectors.packed import Mask, Packed, Postings, damaged_vectors, tag_key, write_packed
from kraq_dspy.asset.store.vectors.points import (
    alternatives,
    checked_vectors,
    document_weights,
    numbers_of,
    other_dimension,
    query_weights,
    tags_of,
    unit_rows,
)
from kraq_dspy.errors import EncoderMismatchError, IndexStateError, UnknownRecordError
from kraq_dspy.ports import Filters, Vectors

FRESH = ".fresh"
"""The ending of the file with the points that are not in the searchable one yet."""

_BLOCK = 4096  # rows written, or compared with queries, at once
_QUERIES = 64

_SCHEMA = """
CREATE TABLE IF NOT EXISTS points (id BLOB NOT NULL UNIQUE, vector BLOB, words BLOB, weights BLOB, tags BLOB);
CREATE TABLE IF NOT EXISTS gone (id BLOB PRIMARY KEY) WITHOUT ROWID;
"""


class LocalVectorStore:
    """A `ports.VectorStore` in the file `path`, which many processes may search while one writes. Safe for threads.

    Points are written to an SQLite file beside it, a batch at a time: a killed process leaves whole batches. The first
    search after a write, and `seal`, put them into a new searchable file, which takes the place of the former.

    With `apart`, a folder, nothing is written beside `path`: that is for readers who need more than is there. They
    see what is there now, with what was not sealed yet; `keep` is handed each file that they seal.

    Raises EncoderMismatchError when the file holds vectors of another dimension, IndexStateError when it cannot be
    read.
    """

    def __init__(
        self,
        path: Path,
        dimension: int,
        *,
        apart: Callable[[], Path] | None = None,
        keep: Callable[[Path], None] | None = None,
    ) -> None:
        self.dimension = dimension
        self._path = path
        self._apart, self._keep = apart, keep
        self._lock = threading.RLock()
        self._fresh: Database | None = None
        self._closed = False

        with writing_to(path.parent):
            fresh = Database(left, write=apart is None) if (left := _fresh_path(path)).exists() else None
            self._packed = Packed.open(path, dimension) if path.exists() else Packed.empty(dimension)

        if fresh is None:
            return

        try:
            self._require_dimension(fresh)
            if apart is None:
                self._prepare(fresh)
                self._fresh = fresh
            else:  # what a writer, alive or killed, has not sealed
                self._seal(fresh)
        finally:
            if self._fresh is None:
                fresh.close()

    def count(self) -> int:
        with self._open() as packed:
            return len(packed) if self._fresh is None else len(self.ids())

    def ids(self) -> set[str]:
        with self._open() as packed:
            ids = set(packed.hex_ids())
            if self._fresh is not None:
                with self._fresh.reading() as connection:
                    ids.difference_update(key.hex() for (key,) in connection.execute("SELECT id FROM gone"))
                    ids.update(key.hex() for (key,) in connection.execute("SELECT id FROM points"))
            return ids

    def upsert(
        self,
        ids: Sequence[str],
        vectors: Vectors,
        texts: Sequence[str] | None = None,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        rows = checked_vectors(vectors, self.dimension, len(ids))

        points = []
        for i, point_id in enumerate(ids):
            words = document_weights(texts[i]) if texts is not None else {}
            tags = dict.fromkeys(tags_of(payloads[i])) if payloads else ()
            points.append(
                (
                    _key(point_id),
                    unit_rows(rows[i]).tobytes(),
                    np.array([*words], np.uint32).tobytes(),
                    np.array([*words.values()], np.float32).tobytes(),
                    np.array([*map(tag_key, tags)], np.uint64).tobytes(),
                )
            )

        if points:
            with self._writing() as connection:
                connection.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?)", points)

    def delete(self, ids: Collection[str]) -> None:
        keys = [(_key(id),) for id in ids]
        if keys:
            with self._writing() as connection:
                connection.executemany("DELETE FROM points WHERE id = ?", keys)
                connection.executemany("INSERT OR IGNORE INTO gone VALUES (?)", keys)

    @IN_TURN
    def vectors(self, ids: Sequence[str]) -> Vectors:
        packed = self._searchable()
        rows = packed.rows_of([_key(id) for id in ids])
        if (rows < 0).any():
            raise UnknownRecordError(f"No vector is stored for the id {ids[int(np.argmin(rows))]!r}.")
        return packed.dense[rows]

    def copy_part(self, ids: Iterable[str], target: Path) -> None:
        """Write the points with these ids into the new file `target`: their vectors, words and
        tags, and no others."""
        packed = self._searchable()
        rows = packed.rows_of([_key(id) for id in ids])
        rows = np.unique(rows[rows >= 0])

        new_row_of = np.full(len(packed), -1, np.int64)
        new_row_of[rows] = np.arange(len(rows))
        nothing_new = np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.float32)
        words = _merged(packed.words, new_row_of, *nothing_new)
        tags = _merged(packed.tags, new_row_of, *nothing_new)

        starts = range(0, len(rows), _BLOCK)
        blocks = (packed.dense[rows[start : start + _BLOCK]] for start in starts)
        write_packed(target, packed.ids[rows], blocks, self.dimension, words, tags)

    @IN_TURN
    def search(
        self, vectors: Vectors, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[list[tuple[str, float]]]:
        rows = checked_vectors(vectors, self.dimension)
        hits = []
        with self._readable():
            packed, mask = self._prepared(k, exclude, filters)
            for some in batches(unit_rows(rows), _QUERIES):
                hits += [_hits(packed, *best) for best in packed.nearest(np.stack(some), k, mask)]
        return hits

    @IN_TURN
    def search_text(
        self, text: str, k: int, *, exclude: Collection[str] = (), filters: Filters | None = None
    ) -> list[tuple[str, float]]:
        with self._readable():
            packed, mask = self._prepared(k, exclude, filters)
            return _hits(packed, *packed.with_words(query_weights(text), k, mask))

    @IN_TURN
    def texts_with(self, words: Sequence[str]) -> list[int]:
        """Count for each of the words, as `words_of` makes them, in how many texts it stands."""
        with self._readable():
            packed = self._searchable()
            spans = [packed.words.span(number) for number in numbers_of(words)]
        return [span.stop - span.start for span in spans]

    def seal(self) -> None:
        """Put all that was written into the searchable file."""
        self._searchable()

    def close(self) -> None:
        """May be called twice. The store keeps unsealed points, and has them when it is opened
        again."""
        with self._lock:
            self._closed = True
            if self._fresh is not None:
                self._fresh.close()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except IndexError as error:
            raise damaged_vectors(self._path, str(error)) from error

    @contextmanager
    def _open(self) -> Iterator[Packed]:
        with self._lock:
            if self._closed:
                raise IndexStateError(f"The vectors in {str(self._path)!r} were closed. Open them again.")
            yield self._packed

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        with self._open():
            if self._fresh is None:
                with writing_to(self._target.parent):
                    self._target.parent.mkdir(parents=True, exist_ok=True)
                self._fresh = Database(_fresh_path(self._target))
                self._prepare(self._fresh)
            with self._fresh.writing() as connection:
                yield connection

    @cached_property
    def _target(self) -> Path:
        """What this store writes: its file, or one of the same name in its own folder."""
        return self._path if self._apart is None else self._apart() / self._path.name

    def _prepared(self, k: int, exclude: Collection[str], filters: Filters | None) -> tuple[Packed, Mask | None]:
        if k < 1:
            raise ValueError(f"k is {k}; it must be 1 or more.")
        packed = self._searchable()
        return packed, packed.allowed(alternatives(filters), [_key(id) for id in exclude])

    def _searchable(self) -> Packed:
        with self._open():
            if self._fresh is not None:
                self._seal(self._fresh)
                self._fresh.close()  # which empties its log
                self._fresh = None
                for ending in ("", "-wal", "-shm"):  # another process that reads this draft may have kept the last two
                    with suppress(FileNotFoundError):
                        self._target.with_name(f"{self._target.name}{FRESH}{ending}").unlink()
                if self._keep is not None:
                    self._keep(self._target)
            return self._packed

    def _prepare(self, fresh: Database) -> None:
        with fresh.writing() as connection:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {self.dimension}")

    def _require_dimension(self, fresh: Database) -> None:
        with fresh.reading() as connection:
            [stored] = connection.execute("PRAGMA user_version").fetchone()
        if stored not in (0, self.dimension):  # 0: its writer was killed before it wrote anything
            raise EncoderMismatchError(other_dimension(str(self._path), stored, self.dimension))

    def _seal(self, fresh: Database) -> None:
        with writing_to(self._target.parent), fresh.snapshot() as connection:
            self._target.parent.mkdir(parents=True, exist_ok=True)
            if connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone() == (2,):
                _merge(self._packed, connection, self._target, self.dimension)
                self._packed = Packed.open(self._target, self.dimension)


def _merge(packed: Packed, connection: Any, target: Path, dimension: int) -> None:
    """Write the points that are packed and were neither changed nor removed, and the fresh ones."""
    fresh = [key for (key,) in connection.execute("SELECT id FROM points ORDER BY id")]
    gone = [key for (key,) in connection.execute("SELECT id FROM gone")]

    keep = np.ones(len(packed), dtype=np.bool_)
    former = packed.rows_of(fresh + gone)
    keep[former[former >= 0]] = False
    unchanged = np.flatnonzero(keep)

    fresh_ids = np.frombuffer(b"".join(fresh), np.uint8).reshape(-1, 16)
    ids = np.concatenate([packed.ids[unchanged], fresh_ids])
    order = unchanged
    if len(ids):
        order = np.argsort(np.ascontiguousarray(ids).view("S16").ravel(), kind="stable")

    # The former row of each point, -1 for a fresh one; the new row of each former one, -1 for those that go.
    origin = np.concatenate([unchanged, np.full(len(fresh), -1, np.int64)])[order]
    place_of = np.full(len(packed), -1, np.int64)
    place_of[origin[origin >= 0]] = np.flatnonzero(origin >= 0)
    places = np.flatnonzero(origin < 0)

    words = _merged(packed.words, place_of, *_fresh_words(connection, places))
    tags = _merged(packed.tags, place_of, *_fresh_tags(connection, places))
    dense = _dense(packed, origin, connection, dimension)
    write_packed(target, ids[order], dense, dimension, words, tags)


def _fresh_tags(connection: Any, places: NDArray[np.int64]) -> tuple[Any, Any, Any]:
    """The tags of the fresh points, the row of each, and no weights: tags have none."""
    tagged = [tags for (tags,) in connection.execute("SELECT tags FROM points ORDER BY id")]
    rows = np.repeat(places, [len(tags) // 8 for tags in tagged]).astype(np.int32)
    return np.frombuffer(b"".join(tagged), np.uint64), rows, np.zeros(0, np.float32)


def _dense(packed: Packed, origin: NDArray[np.int64], connection: Any, dimension: int) -> Iterator[Vectors]:
    """The rows of the merged file, a block at a time; `origin` are their rows in the former one, or -1."""
    fresh = connection.execute("SELECT vector FROM points ORDER BY id")
    for start in range(0, len(origin), _BLOCK):
        old = origin[start : start + _BLOCK]
        block = np.empty((len(old), dimension), np.float32)
        block[old >= 0] = packed.dense[old[old >= 0]]
        n_fresh = int(np.count_nonzero(old < 0))
        rows = itertools.islice(fresh, n_fresh)  # not fetchmany, which takes 0 for all
        block[old < 0] = np.frombuffer(b"".join(row for (row,) in rows), np.float32).reshape(n_fresh, dimension)
        yield block


def _fresh_words(connection: Any, places: NDArray[np.int64]) -> tuple[Any, Any, Any]:
    keys, weights, counts = [], [], []
    for words, values in connection.execute("SELECT words, weights FROM points ORDER BY id"):
        keys.append(words)
        weights.append(values)
        counts.append(len(words) // 4)
    rows = np.repeat(places, counts).astype(np.int32)
    return (
        np.frombuffer(b"".join(keys), np.uint32).astype(np.uint64),
        rows,
        np.frombuffer(b"".join(weights), np.float32),
    )


def _merged(old: Postings, places: NDArray[np.int64], keys: Any, rows: Any, weights: Any) -> Postings:
    moved = places[old.rows]
    stays = moved >= 0
    return Postings.of(
        np.concatenate([np.repeat(old.keys, np.diff(old.starts))[stays], keys]),
        np.concatenate([moved[stays].astype(np.int32), rows]),
        np.concatenate([old.weights[stays] if len(old.weights) else old.weights, weights]),
    )


def _fresh_path(path: Path) -> Path:
    return path.with_name(path.name + FRESH)


def _hits(packed: Packed, rows: Any, scores: Any) -> list[tuple[str, float]]:
    return list(zip(packed.hex_ids(rows), scores.tolist(), strict=True))


def _key(point_id: str) -> bytes:
    """The bytes of an id. Raises ValueError for an id that is no `content_id`."""
    key = bytes.fromhex(point_id)
    if len(key) != 16:
        raise ValueError(f"{point_id!r} is not the id of a point; expected 32 hexadecimal digits.")
    return key
