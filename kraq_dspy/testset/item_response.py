"""Tells which questions separate retrievers: Rasch's model of who solves what, fitted without the one it speaks about.

Rasch, "Probabilistic models for some intelligence and attainment tests", 1960: a retriever of ability a solves a
question of difficulty d with probability 1 / (1 + exp(d - a)). A question tells most about retrievers whose chance is
even, and next to nothing if all of them solve it, or none does (auto-rag-eval thins so: Guinet et al., 2024).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_TOLD = 0.25
"""The information of a question about a retriever that solves it with an even chance."""
_SPREAD = 1.5
"""Standard deviation of abilities and difficulties before anything was asked, in logits."""
_STEPS = 50

Floats = NDArray[np.float64]


def fit(solved: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return difficulties of the rows and abilities of the columns of `solved`, shares in [0, 1],
    at their most probable.

    Both are drawn towards 0, so that a question that all solve has a difficulty, too.

    >>> difficulties, abilities = fit(np.array([[1, 1], [1, 0], [1, 0], [0, 0]]))
    >>> bool(difficulties[0] < difficulties[1] < difficulties[3]), bool(abilities[0] > abilities[1])
    (True, True)
    """
    answers = np.asarray(solved, np.float64)
    difficulties, abilities = np.zeros(answers.shape[0]), np.zeros(answers.shape[1])
    for _ in range(_STEPS):
        chance = _chance(difficulties, abilities)
        slope = chance * (1 - chance)
        difficulties += _newton((chance - answers).sum(axis=1), slope.sum(axis=1), difficulties)

        chance = _chance(difficulties, abilities)
        slope = chance * (1 - chance)
        abilities += _newton((answers - chance).sum(axis=0), slope.sum(axis=0), abilities)
    return difficulties, abilities


def information(solved: NDArray[Any]) -> Floats:
    """Return how much each row tells of a retriever that had no say in how hard it is: the mean
    over all columns, each with difficulties fitted to the others, in [0, .25].

    float64 `[rows]`. One column alone is all there is; none gives .25 for every row.

    >>> hard, even, easy = information(np.array([[0, 0, 0], [1, 1, 0], [1, 1, 1]]))
    >>> bool(even > hard and even > easy)
    True
    """
    n_rows, n_columns = np.shape(solved)
    if not n_rows or n_columns < 2:
        return np.full(n_rows, MOST_TOLD)

    information_of_rows = np.zeros(n_rows)
    for left_out in range(n_columns):
        others = np.delete(np.asarray(solved), left_out, axis=1)
        difficulties, abilities = fit(others)
        chance = _chance(difficulties, np.array([abilities.mean()]))[:, 0]
        information_of_rows += chance * (1 - chance) / n_columns
    return information_of_rows


def _chance(difficulties: Floats, abilities: Floats) -> Floats:
    return 1 / (1 + np.exp(np.clip(difficulties[:, None] - abilities[None, :], -30, 30)))


def _newton(gradient: Floats, curvature: Floats, values: Floats) -> Floats:
    """Return one step towards the most probable values, with the prior's pull."""
    prior = 1 / _SPREAD**2
    return np.clip((gradient - prior * values) / (curvature + prior), -1, 1)
