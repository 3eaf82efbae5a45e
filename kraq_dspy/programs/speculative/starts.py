"""Begins KMeans from many places and keeps the best end (Arthur and Vassilvitskii, 2007; Lloyd, 1982)."""

import numpy as np
from numpy.typing import NDArray

MAX_ITERATIONS = 300


def best_start(rows: NDArray[np.float64], k: int, *, seed: int, n_init: int) -> NDArray[np.float64]:
    """The centres, `[k, dimension]`, where the best of `n_init` runs of KMeans ended; `rows` hold more than `k` that
    differ.

    Each run draws its first centres by k-means++ (without scikit-learn's extra draws: more starts cost less) and moves
    them until no row changes its cluster. All runs are one array, `[n_init, k, n_rows]`, so that 400 over a few dozen
    rows take some milliseconds; scikit-learn takes .2 for each. Only products of rows are needed: their number, not
    their dimension, decides. A cluster that loses all of its rows stays where it was.
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
    return np.asarray(shares[spread.argmin()] @ rows)
