"""Keeps points in one file that is mapped into memory and never changed: searched by any number of processes at once.

A search compares a vector with all points, 44 ms for a million of 384 numbers (docs/decisions.md). All
arrays stand in the order of the ids, so points that score alike come in that order too.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.one_blas_thread import product
from kraq_dspy.asset.arrays import map_arrays, write_arrays
from kraq_dspy.asset.store.own_files import require_descriptors
from kraq_dspy.asset.store.vectors.points import other_dimension
from kraq_dspy.errors import EncoderMismatchError, IndexStateError
from kraq_dspy.ports import Vectors

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
Best = tuple[Rows, NDArray[np.float32]]
"""Rows and their scores, best first."""

_FEW = 0.1  # share of the points below which their rows are picked out instead of all being compared
_NOISE = 1e-5  # more than sums of float32 differ by, whatever order they are added in
_ID = 16
_POSTINGS = ("<u8", "<i8", "<i4", "<f4")  # types of `Postings.keys`, `starts`, `rows` and `weights`


@dataclass(frozen=True, slots=True)
class Postings:
    """Which rows have which keys: those of `keys[i]` are `rows[starts[i]:starts[i + 1]]`, ascending, with weights
    (none at all for tags)."""

    keys: NDArray[np.uint64]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, keys: NDArray[np.uint64], rows: NDArray[np.int32], weights: NDArray[np.float32]) -> "Postings":
        order = np.lexsort((rows, keys))
        keys, rows, weights = keys[order], rows[order], weights[order] if len(weights) else weights
        unique, starts = np.unique(keys, return_index=True)
        return cls(unique, np.append(starts, len(keys)).astype(np.int64), rows, weights)

    def span(self, key: int) -> slice:
        place = int(np.searchsorted(self.keys, np.uint64(key)))
        if place == len(self.keys) or int(self.keys[place]) != key:
            return slice(0, 0)
        return slice(int(self.starts[place]), int(self.starts[place + 1]))


@dataclass(frozen=True, slots=True)
class Packed:
    """`ids` are uint8 `[n, 16]`, ascending; `dense` is float32 `[n, dimension]`, rows L2-normalised."""

    ids: NDArray[np.uint8]
    dense: Vectors
    words: Postings
    tags: Postings

    @classmethod
    def empty(cls, dimension: int) -> "Packed":
        none = Postings.of(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.float32))
        return cls(np.zeros((0, _ID), np.uint8), np.zeros((0, dimension), np.float32), none, none)

    @classmethod
    def open(cls, path: Path, dimension: int) -> "Packed":
        """Raises EncoderMismatchError for vectors of another dimension, IndexStateError for a file that is damaged."""
        try:
            ids, dense, *postings = map_arrays(path, ("|u1", "<f4", *_POSTINGS, *_POSTINGS))
            packed = cls(ids, dense, Postings(*postings[:4]), Postings(*postings[4:]))
            packed._require_fit()
        except ValueError as error:
            raise damaged_vectors(path, str(error)) from error
        except OSError as error:
            require_descriptors(error)
            raise IndexStateError(f"Cannot read the vectors in {str(path)!r}: {error.strerror}.") from error

        if packed.dense.shape[1] != dimension:
            raise EncoderMismatchError(other_dimension(str(path), packed.dense.shape[1], dimension))
        return packed

    def _require_fit(self) -> None:
        """Raises ValueError if the arrays are not of the same points."""
        n = len(self.ids)
        fits = self.ids.shape == (n, _ID) and self.dense.ndim == 2 and len(self.dense) == n
        for each in (self.words, self.tags):
            fits = fits and all(part.ndim == 1 for part in (each.keys, each.starts, each.rows, each.weights))
            fits = fits and len(each.starts) == len(each.keys) + 1 and each.starts[-1] == len(each.rows)
            fits = fits and len(each.weights) in (0, len(each.rows))
        if not fits:
            raise ValueError("its arrays do not fit each other")

    def __len__(self) -> int:
        return len(self.ids)

    def hex_ids(self, rows: Rows | None = None) -> list[str]:
        text = (self.ids if rows is None else self.ids[rows]).tobytes().hex()
        return [text[start : start + 2 * _ID] for start in range(0, len(text), 2 * _ID)]

    def rows_of(self, keys: Sequence[bytes]) -> Rows:
        """The row of each key; -1 for one that is not there."""
        looked_up = np.frombuffer(b"".join(keys), f"S{_ID}")
        if not len(self):
            return np.full(len(looked_up), -1, np.int64)
        stored = self.ids.view(f"S{_ID}").ravel()
        places = np.minimum(np.searchsorted(stored, looked_up), len(self) - 1)
        return np.where(stored[places] == looked_up, places, -1)

    def allowed(self, one_of: Sequence[Sequence[str]], excluded: Sequence[bytes]) -> Mask | None:
        """The points with a tag of each list of `one_of` that are not excluded; None if those are all."""
        if not one_of and not excluded:
            return None

        mask = np.ones(len(self), dtype=np.bool_)
        for tags in one_of:
            tagged = np.zeros(len(self), dtype=np.bool_)
            for tag in tags:
                tagged[self.tags.rows[self.tags.span(tag_key(tag))]] = True
            mask &= tagged

        rows = self.rows_of(excluded)
        mask[rows[rows >= 0]] = False
        return mask

    def nearest(self, vectors: Vectors, k: int, mask: Mask | None) -> list[Best]:
        """The rows with the greatest cosines, best first, and those, for each L2-normalised row of `vectors`."""
        some = None if mask is None or mask.sum() > _FEW * len(self) else np.flatnonzero(mask)
        dense = self.dense if some is None else self.dense[some]
        best = []
        for vector, scores in zip(vectors, product(vectors, dense.T), strict=True):
            if some is None and mask is not None:
                scores[~mask] = -np.inf
            best.append(self._first(vector, some, scores, k))
        return best

    def _first(self, vector: Vectors, rows: Rows | None, scores: NDArray[np.float32], k: int) -> Best:
        """The best of `rows` (all, if None) by their `scores`, and by exact sums where those are nearly alike."""
        places = _candidates(scores, k)
        rows = places if rows is None else rows[places]
        exact = (self.dense[rows].astype(np.float64) * vector).sum(axis=1).astype(np.float32)
        return _first(rows, exact, k)

    def with_words(self, weights: Mapping[int, float], k: int, mask: Mask | None) -> Best:
        """The best rows by BM25, with their scores; points without any of the words are left out."""
        total = np.zeros(len(self))
        for word, weight in weights.items():
            span = self.words.span(word)
            n_with = span.stop - span.start
            rarity = math.log(1 + (len(self) - n_with + 0.5) / (n_with + 0.5))
            total[self.words.rows[span]] += self.words.weights[span] * (weight * rarity)
        if mask is not None:
            total[~mask] = 0
        rows = np.flatnonzero(total > 0)
        return _first(rows, total[rows].astype(np.float32), k)


def write_packed(
    path: Path, ids: NDArray[np.uint8], dense: Iterator[Vectors], dimension: int, words: Postings, tags: Postings
) -> None:
    """All of it or nothing takes the place of `path`; `dense` are the rows, some at a time. Raises OSError."""
    arrays: list[tuple[str, tuple[int, ...], Iterable[Any]]] = [
        ("|u1", ids.shape, [ids]),
        ("<f4", (len(ids), dimension), dense),
    ]
    for postings in (words, tags):
        for kind, name in zip(_POSTINGS, Postings.__slots__, strict=True):
            part = getattr(postings, name)
            arrays.append((kind, part.shape, [part]))

    write_arrays(path, arrays)


def tag_key(tag: str) -> int:
    return int.from_bytes(blake2b(tag.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _candidates(scores: NDArray[Any], k: int) -> Rows:
    """Find whatever may be among the best `k`: as many, and what scores so nearly alike that exact
    sums must decide."""
    n_valid = int(np.count_nonzero(scores > -np.inf))
    if n_valid > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        return np.flatnonzero(scores >= least - _NOISE)
    return np.flatnonzero(scores > -np.inf)


def _first(rows: Rows, scores: NDArray[np.float32], k: int) -> Best:
    order = np.lexsort((rows, -scores))[:k]
    return rows[order], scores[order]


def damaged_vectors(path: Path, reason: str) -> IndexStateError:
    return IndexStateError(
        f"The vectors in {str(path)!r} are damaged: {reason}. Restore the index from a copy, or mend it: "
        "kraq check DIR --repair"
    )
