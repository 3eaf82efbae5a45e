"""Keeps points in one file that is mapped into memory and never changed: searched by any number of processes at once.

The search is exact, but for the choice of what is compared where there are very many points (`signs.py`). All arrays
stand in the order of the ids, so points that score alike come in that order too.
"""

import json
import math
import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store.vectors.points import other_dimension
from kraq_dspy.asset.store.vectors.signs import MANY, Mask, Rows, Signs, SignWriter
from kraq_dspy.errors import EncoderMismatchError, IndexStateError
from kraq_dspy.ports import Vectors

Best = tuple[Rows, NDArray[np.float32]]
"""Rows and their scores, best first."""

_MAGIC, _ALIGN = b"kraqvec1", 64
_FEW = 0.1  # share of the points below which their rows are picked out instead of all being compared
_PICKED = 256  # rows that are picked out at once, near the processor
_NOISE = 1e-5  # more than sums of float32 differ by, whatever order they are added in
_ID = 16


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

    def spread(self) -> NDArray[np.uint64]:
        """The key of each row."""
        return np.repeat(self.keys, np.diff(self.starts))

    def span(self, key: int) -> slice:
        place = int(np.searchsorted(self.keys, np.uint64(key)))
        if place == len(self.keys) or int(self.keys[place]) != key:
            return slice(0, 0)
        return slice(int(self.starts[place]), int(self.starts[place + 1]))


@dataclass(frozen=True, slots=True)
class Packed:
    """`ids` are uint8 `[n, 16]`, ascending; `dense` is float32 `[n, dimension]`, rows L2-normalised.

    Without `signs` every point is compared with a query: where there are few, in the files of older versions, where
    signs do not tell the points apart, and where that was asked for.
    """

    ids: NDArray[np.uint8]
    dense: Vectors
    words: Postings
    tags: Postings
    signs: Signs | None = None

    @classmethod
    def empty(cls, dimension: int) -> "Packed":
        none = Postings.of(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.float32))
        return cls(np.zeros((0, _ID), np.uint8), np.zeros((0, dimension), np.float32), none, none)

    @classmethod
    def open(cls, path: Path, dimension: int, *, exact: bool = False) -> "Packed":
        """Raises EncoderMismatchError for vectors of another dimension, IndexStateError for a file that is damaged."""
        try:
            with path.open("rb") as file:
                layout = _layout(file)
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(path, str(error)) from error
        except OSError as error:
            raise IndexStateError(f"Cannot read the vectors in {str(path)!r}: {error.strerror}.") from error
        arrays = {}
        for name, (dtype, shape, offset) in layout.items():
            n_items = math.prod(shape)
            if offset + n_items * np.dtype(dtype).itemsize > len(mapped):
                raise _damaged(path, "it is cut off")
            arrays[name] = np.frombuffer(mapped, dtype, n_items, offset).reshape(shape)
        if arrays["dense"].shape[1] != dimension:
            raise EncoderMismatchError(other_dimension(str(path), arrays["dense"].shape[1], dimension))
        words, tags = (
            Postings(*(arrays[f"{kind}.{part}"] for part in Postings.__slots__)) for kind in ("words", "tags")
        )
        has_signs = "signs.half" in arrays and not exact
        signs = Signs(*(arrays[f"signs.{part}"] for part in Signs.__slots__)) if has_signs else None
        return cls(arrays["ids"], arrays["dense"], words, tags, signs if signs and signs.are_useful else None)

    def __len__(self) -> int:
        return len(self.ids)

    def hex_ids(self, rows: Rows | None = None) -> list[str]:
        text = (self.ids if rows is None else self.ids[rows]).tobytes().hex()
        return [text[start : start + 2 * _ID] for start in range(0, len(text), 2 * _ID)]

    def rows_of(self, keys: Sequence[bytes]) -> Rows:
        """-1 for a key that is not there."""
        looked_up = np.frombuffer(b"".join(keys), f"S{_ID}")
        if not len(self):
            return np.full(len(looked_up), -1, np.int64)
        stored = self.ids.view(f"S{_ID}").ravel()
        places = np.minimum(np.searchsorted(stored, looked_up), len(self) - 1)
        return np.where(stored[places] == looked_up, places, -1)

    def allowed(self, one_of: Sequence[Sequence[str]], excluded: Sequence[bytes]) -> Mask | None:
        """The points with a tag of each list of `one_of` that are not excluded; None where those are all."""
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
        """For each L2-normalised row of `vectors`, the rows with the greatest cosines, best first, and those."""
        if self.signs is not None and self.signs.help_with(k):
            each = [self.signs.nearby(vector, k, mask) for vector in vectors]
            return [
                self._first(vector, rows, self._scores(vector, rows), k)
                for vector, rows in zip(vectors, each, strict=True)
            ]
        some = None if mask is None or mask.sum() > _FEW * len(self) else np.flatnonzero(mask)
        dense = self.dense if some is None else self.dense[some]
        best = []
        for vector, scores in zip(vectors, vectors @ dense.T, strict=True):
            if some is None and mask is not None:
                scores[~mask] = -np.inf
            best.append(self._first(vector, some, scores, k))
        return best

    def _scores(self, vector: Vectors, rows: Rows) -> NDArray[np.float32]:
        scores = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), _PICKED):
            some = slice(start, start + _PICKED)
            np.matmul(self.dense.take(rows[some], axis=0), vector, out=scores[some])
        return scores

    def _first(self, vector: Vectors, rows: Rows | None, scores: NDArray[np.float32], k: int) -> Best:
        """The best of `rows` (all, if None) by their `scores`, and by exact sums where those are nearly alike."""
        places = _candidates(scores, k)
        rows = places if rows is None else rows[places]
        exact = (self.dense[rows].astype(np.float64) * vector).sum(axis=1).astype(np.float32)
        return _first(rows, exact, k)

    def with_words(self, weights: Mapping[int, float], k: int, mask: Mask | None) -> Best:
        """As `nearest`, by BM25; points without any of the words are left out."""
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


def write_packed(path: Path, ids: NDArray[np.uint8], dense: Iterator[Vectors], dimension: int, words: Postings,
                 tags: Postings) -> None:  # fmt: skip
    """All of it or nothing takes the place of `path`; `dense` are the rows, some at a time. Raises OSError."""
    writer = SignWriter(len(ids), dimension) if len(ids) >= MANY else None
    parts = {f"{kind}.{name}": getattr(postings, name) for kind, postings in (("words", words), ("tags", tags))
             for name in Postings.__slots__}  # fmt: skip
    if writer is not None:  # its arrays are filled while the rows are written, before their turn comes
        dense = writer.over(dense)
        parts.update((f"signs.{name}", getattr(writer.signs, name)) for name in Signs.__slots__)
    shapes = {"ids": ids.shape, "dense": (len(ids), dimension), **{name: part.shape for name, part in parts.items()}}
    types = {"ids": "u1", "dense": "<f4", **{name: part.dtype.newbyteorder("<").str for name, part in parts.items()}}
    layout: dict[str, tuple[str, tuple[int, ...], int]] = {}
    offset = 4096
    for name, shape in shapes.items():
        layout[name] = (types[name], shape, offset)
        offset += -(-math.prod(shape) * np.dtype(types[name]).itemsize // _ALIGN) * _ALIGN
    header = json.dumps(layout).encode()
    with replaced(path) as draft, draft.open("wb") as file:
        file.write(_MAGIC + len(header).to_bytes(8, "little") + header)
        for name, (dtype, _, start) in layout.items():
            file.seek(start)
            blocks = dense if name == "dense" else [ids if name == "ids" else parts[name]]
            for block in blocks:
                file.write(np.ascontiguousarray(block, dtype).data)
        file.truncate(offset)


def tag_key(tag: str) -> int:
    return int.from_bytes(blake2b(tag.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _candidates(scores: NDArray[Any], k: int) -> Rows:
    """Whatever may be among the best `k`: as many, and what scores so nearly alike that exact sums must decide."""
    n_valid = int(np.count_nonzero(scores > -np.inf))
    if n_valid > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        return np.flatnonzero(scores >= least - _NOISE)
    return np.flatnonzero(scores > -np.inf)


def _first(rows: Rows, scores: NDArray[np.float32], k: int) -> Best:
    order = np.lexsort((rows, -scores))[:k]
    return rows[order], scores[order]


def _layout(file: IO[bytes]) -> dict[str, tuple[str, tuple[int, ...], int]]:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as such a file does")
    layout = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: (dtype, tuple(shape), offset) for name, (dtype, shape, offset) in layout.items()}


def _damaged(path: Path, reason: str) -> IndexStateError:
    return IndexStateError(
        f"The vectors in {str(path)!r} are damaged: {reason}. Restore the index from a copy, or mend it: "
        "kraq check DIR --repair"
    )
