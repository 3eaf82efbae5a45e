"""Clusters passages, and draws one from every cluster into each subset (Wang et al., 2024; KRAQ paper, 3.2)."""

import math
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.one_blas_thread import ONE_BLAS_THREAD
from kraq_dspy.ports import Vectors

N_INIT = 400  # With 1, two seeds agree on .05-.31 of the clusters (adjusted Rand index), with 400 on .85-1.


def cluster(vectors: Vectors, k: int, *, seed: int = 0) -> tuple[int, ...]:
    """A cluster number for each row of `vectors`, by KMeans; numbers count up from 0 in the order of first appearance.

    There are at most `k` clusters, and no more than there are different rows: equal rows share a cluster. The same
    input and seed give the same clusters. Raises ValueError for `k` below 1.
    """
    if k < 1:
        raise ValueError(f"k is {k}; there must be at least one cluster.")
    if len(vectors) == 0:
        return ()

    # Passages that an encoder in another batch saw twice differ in the last bits.
    distinct, rows = np.unique(np.round(vectors.astype(np.float64), 5), axis=0, return_inverse=True)
    if len(distinct) <= k:
        return _in_order(rows.ravel().tolist())
    if k == 1:
        return (0,) * len(vectors)

    chosen = kmeans(vectors.astype(np.float64), k, seed=seed)
    # Equal rows may fall apart on a tie; the first decides.
    first: dict[int, int] = {}
    return _in_order([first.setdefault(row, label) for row, label in zip(rows.ravel().tolist(), chosen, strict=True)])


def draw_subsets(labels: Sequence[int], m: int, *, seed: int = 0) -> list[tuple[int, ...]]:
    """Return up to `m` different subsets, each with the position of one passage from every cluster,
    in rising order.

    There are at most as many as the product of the cluster sizes; then all of them are drawn. No labels give one
    empty subset. Raises ValueError for `m` below 1.
    """
    if m < 1:
        raise ValueError(f"m is {m}; there must be at least one subset.")

    members: dict[int, list[int]] = {}
    for position, label in enumerate(labels):
        members.setdefault(label, []).append(position)
    clusters = [members[label] for label in sorted(members)]
    possible = math.prod(len(positions) for positions in clusters)
    rng = random.Random(seed)
    numbers: dict[int, None] = {}
    while len(numbers) < min(m, possible):
        numbers[rng.randrange(possible)] = None
    return [_subset(number, clusters) for number in numbers]


def _subset(number: int, clusters: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The subset with this number: its digits, one to each cluster, choose the members."""
    chosen = []
    for positions in clusters:
        number, digit = divmod(number, len(positions))
        chosen.append(positions[digit])
    return tuple(sorted(chosen))


def _in_order(labels: Sequence[int]) -> tuple[int, ...]:
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(label, len(numbers)) for label in labels)


MAX_ITERATIONS = 300


@ONE_BLAS_THREAD
def kmeans(rows: NDArray[np.float64], k: int, *, seed: int, n_init: int = N_INIT) -> list[int]:
    """Each row's cluster in the tightest of `n_init` runs of KMeans; `rows` hold more than `k` that differ.

    Each run draws its first centres by k-means++ and moves them until no row changes its cluster. All runs are one
    array, `[n_init, k, n_rows]`, so that 400 over a few dozen rows take some milliseconds; scikit-learn takes .2 for
    each, and a second for its import. Only products of rows are needed: their number, not their dimension, decides. A
    cluster that loses all of its rows stays where it was.
    """
    rng = np.random.default_rng(seed)
    around = rows - rows.mean(axis=0)
    products = around @ around.T
    squares = np.diag(products)
    apart = np.maximum(squares[:, None] + squares[None, :] - 2 * products, 0.0)
    chosen = rng.integers(len(rows), size=(n_init, 1))
    for _ in range(k - 1):
        weights = np.cumsum(apart[chosen].min(axis=1), axis=1)
        drawn = (weights > rng.random((n_init, 1)) * weights[:, -1:]).argmax(axis=1)
        chosen = np.concatenate([chosen, drawn[:, None]], axis=1)

    labels = apart[chosen].argmin(axis=1)
    shares = np.zeros((n_init, k, len(rows)))  # of each row in a centre
    spread = np.zeros(n_init)
    going = np.arange(n_init)
    for _ in range(MAX_ITERATIONS):
        members = labels[going, None, :] == np.arange(k)[None, :, None]
        sizes = members.sum(axis=2, keepdims=True)
        shares[going] = share = np.where(sizes > 0, members / np.maximum(sizes, 1), shares[going])
        towards = share @ products
        distances = (towards * share).sum(axis=2, keepdims=True) - 2 * towards  # squared, less the row's own square
        nearest = distances.argmin(axis=1)
        spread[going] = distances.min(axis=1).sum(axis=1)
        moved = (nearest != labels[going]).any(axis=1)
        labels[going] = nearest
        going = going[moved]
        if not going.size:
            break

    best: list[int] = labels[spread.argmin()].tolist()
    return best
