"""Finds the rows that may be nearest to a vector, among very many, by a few bits of each.

A row is kept as the signs of 384 projections, 48 bytes. Two rows differ in the more signs the wider their angle is
(Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002), and projections within the leading
principal components, turned at random, tell more than others (Gong and Lazebnik, "Iterative quantization", CVPR 2011:
their PCA-RR). All rows are compared by the first half of the signs, some of those by all, and what is left by the
vectors themselves, which is the caller's part (Jégou and others, "Searching in one billion vectors: re-rank with source
coding", ICASSP 2011).

There are no lists and no graph: any mask may be laid over the rows, and signs depend on which rows there are, not on
how they came. Vectors in which no row is much nearer than the others (of another encoder, or made up) cannot be told
apart so; that is tried on a sample when the signs are made, and then all rows are compared.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.ports import Vectors

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.uint64]

MANY = 50_000
"""Rows from which on their signs are kept. Fewer are compared one by one, which takes some 10 ms at most."""
KEPT = 4000
"""Rows that are left to be compared by their vectors, or more (see `Signs.nearby`)."""

_HALF = 3  # words of 64 signs
_COMPONENTS = (192, 256)  # leading ones that each half of the signs sees
_SAMPLE = 16_384  # rows that components and bounds are taken from
_WIDER = 6  # rows that are compared by all signs, for each that is left
_EACH = 80  # rows that are left, for each one that is asked for
_BLOCK = 16_384  # rows that are compared at once, near the processor
_PROBES = 128  # rows of the sample whose nearest ones are looked for
_ASKED = 15  # nearest ones, of all rows
_LEAST_FOUND = 0.9  # share of them below which signs are of no use
_FORBIDDEN = 255  # for a row out of the mask: more signs than there are in a half


@dataclass(frozen=True, slots=True)
class Signs:
    """On which sides of `planes` (float32 `[dimension, 384]`) through `center` the rows are, a bit each.

    `half` is uint64 `[3, n]`, to be read from end to end; `rest` uint64 `[n, 3]`, to pick rows out.
    """

    center: Vectors
    planes: Vectors
    half: Codes
    rest: Codes

    @classmethod
    def of_none(cls, n_rows: int, dimension: int) -> "Signs":
        center, planes = np.zeros(dimension, np.float32), np.zeros((dimension, 2 * _HALF * 64), np.float32)
        return cls(center, planes, np.zeros((_HALF, n_rows), np.uint64), np.zeros((n_rows, _HALF), np.uint64))

    @property
    def are_useful(self) -> bool:
        """Whether the rows can be told apart by them; else there are no planes."""
        return bool(self.planes.any())

    def help_with(self, k: int) -> bool:
        """Whether few enough rows would be left for `k` that it is quicker than to compare all."""
        return _WIDER * max(KEPT, _EACH * k) <= len(self.rest)

    def nearby(self, vector: Vectors, k: int, mask: Mask | None) -> Rows:
        """Rows of the mask, ascending, among which the `k` nearest to `vector` nearly always are.

        They are 4,000, or 80 for each of `k` where that is more; all of the mask where it has no more.
        """
        n_left = max(KEPT, _EACH * k)
        n_allowed = len(self.rest) if mask is None else int(np.count_nonzero(mask))
        if n_allowed <= n_left:
            return np.arange(n_allowed) if mask is None else np.flatnonzero(mask)
        code = _coded(vector[None] - self.center, self.planes)[0]
        if mask is not None and n_allowed <= _WIDER * n_left:
            rows = np.flatnonzero(mask)
            differ = _sum(np.bitwise_count(self.half[:, rows] ^ code[:_HALF, None]))
        else:
            by_half = self._differing(code[:_HALF])
            if mask is not None:
                by_half |= np.negative((~mask).view(np.uint8))  # that is _FORBIDDEN
            rows = _least(by_half, n_left, _WIDER * n_left / n_allowed)
            differ = by_half[rows].astype(np.uint16)
        differ += _sum(np.bitwise_count(self.rest.take(rows, axis=0) ^ code[_HALF:]).T)
        return np.sort(rows[np.argsort(differ, kind="stable")[:n_left]])

    def _differing(self, code: Codes) -> NDArray[np.uint8]:
        """In how many signs of the first half each row differs."""
        differing = np.empty(len(self.rest), np.uint8)
        for start in range(0, len(differing), _BLOCK):
            some = slice(start, start + _BLOCK)
            np.bitwise_count(self.half[0, some] ^ code[0], out=differing[some])
            for words, word in zip(self.half[1:, some], code[1:], strict=True):
                differing[some] += np.bitwise_count(words ^ word)
        return differing


def _sum(counts: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Of each column; there are few rows, which numpy's own sum would take one number at a time."""
    total: NDArray[np.uint16] = counts[0].astype(np.uint16)
    for row in counts[1:]:
        total += row
    return total


def _least(differing: NDArray[np.uint8], n_least: int, share: float) -> Rows:
    """Rows of that `share`, guessed from the first ones, with the least numbers; no fewer than `n_least`."""
    sample = differing[:_SAMPLE]
    counts = np.cumsum(np.bincount(sample[sample < _FORBIDDEN], minlength=64 * _HALF + 1))
    bound = int(np.searchsorted(counts, share * counts[-1]))
    while np.count_nonzero(near := differing <= bound) < n_least:
        bound += 1  # the first rows were unlike the others
    return np.flatnonzero(near)


class SignWriter:
    """Makes the signs of rows that come in blocks, in the order of their ids.

    Ids are hashes: the first rows are a sample drawn at random, which center and components are taken from. So two
    files with the same rows have the same signs, whatever was in them before.
    """

    def __init__(self, n_rows: int, dimension: int) -> None:
        self.signs = Signs.of_none(n_rows, dimension)
        self._waiting: list[Vectors] = []  # for the sample
        self._n_waiting = self._n_coded = 0
        self._is_useful = False  # as long as that was not tried

    def over(self, blocks: Iterable[Vectors]) -> Iterator[Vectors]:
        """The same blocks, seen."""
        for block in blocks:
            self._add(block)
            yield block

    def _add(self, block: Vectors) -> None:
        self._waiting.append(block)
        self._n_waiting += len(block)
        if self._n_coded == 0:
            if self._n_waiting < min(len(self.signs.rest), _SAMPLE):
                return
            sample = np.concatenate(self._waiting)
            center, planes = _fitted(sample)
            if _share_found(sample, _coded(sample - center, planes), len(self.signs.rest)) >= _LEAST_FOUND:
                self.signs.center[:], self.signs.planes[:] = center, planes
            self._is_useful = self.signs.are_useful
        for rows in self._waiting:
            some = slice(self._n_coded, self._n_coded + len(rows))
            if self._is_useful:
                codes = _coded(rows - self.signs.center, self.signs.planes)
                self.signs.half[:, some], self.signs.rest[some] = codes[:, :_HALF].T, codes[:, _HALF:]
            self._n_coded = some.stop
        self._waiting = []


def _fitted(sample: Vectors) -> tuple[Vectors, Vectors]:
    """The center of the rows, and planes that cut them."""
    center = sample.mean(axis=0)
    from_center = sample - center
    _, components = np.linalg.eigh(from_center.T @ from_center)  # the leading ones come last
    chance = np.random.default_rng(0)
    halves = []
    for n_most in _COMPONENTS:
        leading = components[:, ::-1][:, :n_most]
        halves.append(leading @ _turned(leading.shape[1], _HALF * 64, chance))
    return center, np.concatenate(halves, axis=1).astype(np.float32)


def _share_found(sample: Vectors, codes: Codes, n_rows: int) -> float:
    """The share of the nearest rows that `Signs.nearby` would leave, were as large a part of the sample asked for and
    left as of all `n_rows`."""
    part = len(sample) / n_rows
    k, n_left = max(1, round(_ASKED * part)), max(2, round(KEPT * part))
    n_common = 0
    probes = range(min(_PROBES, len(sample)))
    for probe in probes:
        cosines = sample @ sample[probe]
        cosines[probe] = -np.inf
        differ = np.bitwise_count(codes ^ codes[probe])
        by_half = _sum(differ[:, :_HALF].T)
        by_half[probe] = len(codes[probe]) * 64
        some = np.argsort(by_half, kind="stable")[: _WIDER * n_left]
        left = some[np.argsort(_sum(differ[some].T), kind="stable")[:n_left]]
        n_common += len(np.intersect1d(np.argsort(-cosines)[:k], left))
    return n_common / (k * len(probes))


def _turned(n_components: int, n_planes: int, chance: np.random.Generator) -> NDArray[np.float64]:
    """Part of a random rotation, `[n_components, n_planes]`: of as many rows or as many columns as it has."""
    shape = max(n_components, n_planes), min(n_components, n_planes)
    turned = np.linalg.qr(chance.standard_normal(shape))[0]
    return turned if n_components >= n_planes else turned.T


def _coded(from_center: Vectors, planes: Vectors) -> Codes:
    """uint64 `[n, 6]`"""
    return np.packbits(from_center @ planes > 0, axis=1).view("<u8")
