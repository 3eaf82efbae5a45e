"""Finds clusters in which a passage may belong to several, small enough to be summarised (RAPTOR, section 3)."""

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import needs

DIMENSIONS = 10  # RAPTOR's; it reduces by UMAP, we by principal components: no further package, and the same each time
BELONGS = 0.1  # RAPTOR's threshold of a member's probability
MOST_SHARED = 1.5  # clusters that a row may be in, on average: more, and splitting again would not end
COUNTS = (1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 37, 50)  # of clusters that are tried; RAPTOR tries all up to 50


def soft_clusters(
    vectors: NDArray[np.float32], sizes: Sequence[int], limit: int, *, method: str = "gmm", seed: int = 0
) -> list[list[int]]:
    """Rows of `vectors` in clusters whose `sizes` (tokens) add up to `limit` at most, where two rows fit into it.

    Gaussian mixtures on the principal components, as many as the Bayesian information criterion prefers; a row belongs
    to each component that has it with a probability above a tenth. Clusters that are too large are split again. The
    `method` "kmeans" gives each row one cluster. Every row is in at least one; clusters are sorted, each there once.
    Raises MissingExtraError without scikit-learn, ValueError for another method.
    """
    if method not in ("gmm", "kmeans"):
        raise ValueError(f"method is {method!r}; expected gmm or kmeans.")
    clusters: set[tuple[int, ...]] = set()
    waiting = [tuple(range(len(vectors)))] if len(vectors) else []
    while waiting:
        rows = waiting.pop()
        total = sum(sizes[row] for row in rows)
        if len(rows) == 1 or total <= limit:
            clusters.add(rows)
            continue
        least = min(len(rows), max(2, math.ceil(total / limit))) if method == "kmeans" else 2
        parts = _split(vectors[list(rows)], least, method, seed)
        waiting += [tuple(rows[place] for place in part) for part in parts]
    return [list(rows) for rows in sorted(clusters)]


def _split(vectors: NDArray[np.float32], least: int, method: str, seed: int) -> list[list[int]]:
    """At least two parts, each smaller than the whole."""
    count = len(vectors)
    halves = [list(range(count // 2)), list(range(count // 2, count))]
    if np.allclose(vectors, vectors[0]):
        return halves
    points = _reduced(vectors, seed)
    if method == "gmm" and count > 4:
        parts = _mixture(points, seed)
        shared = sum(map(len, parts)) / count
        if len(parts) > 1 and shared <= MOST_SHARED and all(len(part) < count for part in parts):
            return parts
    parts = _kmeans(points, min(least, count), seed)
    return parts if len(parts) > 1 else halves


def _reduced(vectors: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    with needs("scikit-learn", "embedded", "Clustering passages for RAPTOR"):
        from sklearn.decomposition import PCA
    dimensions = min(DIMENSIONS, len(vectors) - 1, vectors.shape[1])
    points: NDArray[np.float64] = PCA(dimensions, svd_solver="full", random_state=seed).fit_transform(
        vectors.astype(np.float64)
    )
    return points


def _mixture(points: NDArray[np.float64], seed: int) -> list[list[int]]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    best, lowest = None, math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for count in COUNTS:
            if count >= len(points):
                break
            mixture = GaussianMixture(count, covariance_type="diag", random_state=seed, reg_covar=1e-4).fit(points)
            bic = mixture.bic(points)
            if bic < lowest:
                best, lowest = mixture, bic
    if best is None:
        return []
    belongs = best.predict_proba(points)
    parts = [np.flatnonzero(belongs[:, component] > BELONGS).tolist() for component in range(best.n_components)]
    return [part for part in parts if part]


def _kmeans(points: NDArray[np.float64], count: int, seed: int) -> list[list[int]]:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters
        labels = KMeans(count, n_init=3, random_state=seed).fit_predict(points)
    return [np.flatnonzero(labels == label).tolist() for label in sorted(set(labels.tolist()))]
