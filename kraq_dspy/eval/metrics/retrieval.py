"""Measures whether retrieval finds the supporting passages, and how high: binary relevance, all in [0, 1].

`gold` are the ids that support the answer, `ranked` the ids that were found, best first, and only the first `k` count
(`k=None`: all). An id that `ranked` repeats (two chunks of one document) takes up both places, but is found at the
first one only: a document cannot be found twice. To rank documents instead, pass `list(dict.fromkeys(ranked))`.

Every function raises EvaluationError when `gold` is empty, for the measure is undefined there, and ValueError when `k`
is below 1. Means over questions (MRR, MAP) are the report's.
"""

import math
from collections.abc import Collection, Sequence

from kraq_dspy.errors import EvaluationError


def recall_at_k(gold: Collection[str], ranked: Sequence[str], k: int | None) -> float:
    """Compute the share of the gold ids that were found.

    Args:
        gold: the ids of the gold documents, at least one.
        ranked: the ids found, best first.
        k: only the first `k` ids count; None for all.

    Returns:
        The share, in [0, 1].

    >>> recall_at_k({"a", "b"}, ["c", "a", "d"], 2)
    0.5
    """
    return len(_places(gold, ranked, k)) / len(set(gold))


def precision_at_k(gold: Collection[str], ranked: Sequence[str], k: int | None) -> float:
    """Compute the share of the first places that hold a gold id. Empty places count as misses.

    Args:
        gold: the ids of the gold documents, at least one.
        ranked: the ids found, best first.
        k: only the first `k` ids count; None for all.

    Returns:
        The share of `k` places, in [0, 1]; with `k=None`, of the ids found. 0.0 if nothing was found.

    >>> precision_at_k({"a", "b"}, ["a", "c", "d"], 3)
    0.3333333333333333
    """
    places = _places(gold, ranked, k)
    return len(places) / (k or len(ranked) or 1)


def success_at_k(gold: Collection[str], ranked: Sequence[str], k: int | None) -> float:
    """Test whether any gold id was found.

    Args:
        gold: the ids of the gold documents, at least one.
        ranked: the ids found, best first.
        k: only the first `k` ids count; None for all.

    Returns:
        1.0 if it was, otherwise 0.0.

    >>> success_at_k({"a", "b"}, ["c", "a"], 2)
    1.0
    """
    return float(bool(_places(gold, ranked, k)))


def all_supporting_at_k(gold: Collection[str], ranked: Sequence[str], k: int | None) -> float:
    """Test whether every gold id was found, as questions of several steps need.

    Args:
        gold: the ids of the gold documents, at least one.
        ranked: the ids found, best first.
        k: only the first `k` ids count; None for all.

    Returns:
        1.0 if all were found, otherwise 0.0.

    >>> all_supporting_at_k({"a", "b"}, ["c", "a"], 2)
    0.0
    """
    return float(len(_places(gold, ranked, k)) == len(set(gold)))


def mrr(gold: Collection[str], ranked: Sequence[str], k: int | None = None) -> float:
    """Compute the reciprocal rank of the first gold id.

    Args:
        gold: the ids of the gold documents, at least one.
        ranked: the ids found, best first.
        k: only the first `k` ids count; None for all.

    Returns:
        1 / rank, in [0, 1]; 0.0 if none was found.

    >>> mrr({"a", "b"}, ["c", "a", "b"])
    0.5
    """
    places = _places(gold, ranked, k)
    return 1 / places[0] if places else 0.0


def average_precision(gold: Collection[str], ranked: Sequence[str], k: int | None = None) -> float:
    """Compute the mean precision at the ranks of the gold ids, as trec_eval's map and map_cut. A gold id that was not
    found counts as 0.

    Args:
        gold: the ids of the gold documents, at least one.
        ranked: the ids found, best first.
        k: only the first `k` ids count; None for all.

    Returns:
        The mean over all gold ids, in [0, 1]. If `k` is smaller than the number of gold ids, the result stays below
        1.0.

    >>> average_precision({"a"}, ["c", "a"])
    0.5
    """
    places = _places(gold, ranked, k)
    return sum(count / place for count, place in enumerate(places, start=1)) / len(set(gold))


def ndcg_at_k(gold: Collection[str], ranked: Sequence[str], k: int | None) -> float:
    """Compute the normalized discounted cumulative gain (Järvelin and Kekäläinen, 2002).

    Args:
        gold: the ids of the gold documents, at least one.
        ranked: the ids found, best first.
        k: only the first `k` ids count; None for all.

    Returns:
        The sum of `1 / log2(rank + 1)` over the gold ids found, divided by the same sum for the best ranking; in [0,
        1].

    >>> ndcg_at_k({"a", "b"}, ["a", "b", "c"], 3)
    1.0
    """
    places = _places(gold, ranked, k)
    best = min(len(set(gold)), k or len(set(gold)))
    return sum(map(_discount, places)) / sum(_discount(place) for place in range(1, best + 1))


def _discount(place: int) -> float:
    return 1 / math.log2(place + 1)


def _places(gold: Collection[str], ranked: Sequence[str], k: int | None) -> list[int]:
    """Tell where the gold ids stand among the first `k`, from 1, ascending, each at its first
    place."""
    if not gold:
        raise EvaluationError("There are no gold ids, so retrieval cannot be scored; leave such questions out.")
    if k is not None and k < 1:
        raise ValueError(f"k is {k}; expected 1 or more, or None for the whole ranking.")

    missing = set(gold)
    places: list[int] = []
    for place, id in enumerate(ranked[:k], start=1):
        if id in missing:
            missing.remove(id)
            places.append(place)
    return places
