"""KMeans from many starts at once against scikit-learn's loop over 50: how tight, how stable, how quick.

    python benchmarks/speculative_clusters.py [--sets 60] [--json]

Sets of rows around four points with so much noise that the clusters are not clear, as with passages on one question.
Tightness is the sum of squared distances to the centres; stability the adjusted Rand index of two seeds.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from stand_in import machine

from kraq_dspy.prepare.calibrate import agreement
from kraq_dspy.programs.speculative.subsets import cluster

SIZES = ((10, 4), (15, 3), (20, 3), (18, 5), (100, 5), (300, 5))
DIMENSION, NOISE = 384, 3.0


def rows_of(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    points = rng.normal(size=(4, DIMENSION))
    rows = points[rng.integers(4, size=n)] + NOISE * rng.normal(size=(n, DIMENSION))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def loop(rows: NDArray[np.float64], k: int, seed: int) -> tuple[int, ...]:
    return tuple(KMeans(n_clusters=k, n_init=50, random_state=seed).fit_predict(rows).tolist())


def at_once(rows: NDArray[np.float64], k: int, seed: int) -> tuple[int, ...]:
    return cluster(rows.astype(np.float32), k, seed=seed)


def spread(rows: NDArray[np.float64], labels: tuple[int, ...]) -> float:
    groups = [rows[np.array(labels) == label] for label in set(labels)]
    return float(sum(((group - group.mean(axis=0)) ** 2).sum() for group in groups))


def timed(find: Callable[..., Any], rows: NDArray[np.float64], k: int) -> tuple[tuple[int, ...], float]:
    started = time.process_time()
    labels = find(rows, k, 0)
    return labels, (time.process_time() - started) * 1000


def measure(n: int, k: int, sets: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    gains: list[float] = []
    stable: dict[str, list[float]] = {"loop": [], "at once": []}
    took: dict[str, list[float]] = {"loop": [], "at once": []}
    for _ in range(sets):
        rows = rows_of(rng, n)
        clusters = {}
        for name, find in (("loop", loop), ("at once", at_once)):
            clusters[name], milliseconds = timed(find, rows, k)
            took[name].append(milliseconds)
            stable[name].append(agreement(clusters[name], find(rows, k, 1)))
        gains.append(spread(rows, clusters["loop"]) - spread(rows, clusters["at once"]))
    return {
        "n": n,
        "k": k,
        "tighter": sum(gain > 1e-9 for gain in gains),
        "looser": sum(gain < -1e-9 for gain in gains),
        "sets": sets,
        "two seeds agree": {name: statistics.fmean(values) for name, values in stable.items()},
        "milliseconds": {name: statistics.median(values) for name, values in took.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=60, help="for each size")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes = [measure(n, k, options.sets) for n, k in SIZES]
    if options.json:
        print(json.dumps({"machine": machine(), "sizes": sizes}, indent=2))
        return
    print(f"{machine()}; scikit-learn's 50 starts against 400 at once")
    for size in sizes:
        agree, took = size["two seeds agree"], size["milliseconds"]
        print(
            f"N={size['n']} k={size['k']}: of {size['sets']} sets {size['tighter']} tighter, {size['looser']} looser; "
            f"two seeds agree {agree['loop']:.2f} -> {agree['at once']:.2f}; "
            f"{took['loop']:.1f} -> {took['at once']:.1f} ms"
        )


if __name__ == "__main__":
    main()
