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
    """Share of `gold` that was found.

    >>> recall_at_k({"a", "b"}, ["c", "a", "d"], 2)
    0.5
    """
    return len(_places(gold, ranked, k)) / len(set(gold))


def precision_at_k(gold: Collection[str], ranked: Sequence[str], k: int | None) -> float:
    """Share of the `k` places that hold a gold id; places left empty count as misses.

    With `k=None`, of as many places as there are ids; 0.0 when nothing was found.

    >>> precision_at_k({"a", "b"}, ["a", "c", "d"], 3)
    0.3333333333333333
    """
    places = _places(gold, ranked, k)
    return len(places) / (k or len(ranked) or 1)


def success_at_k(gold: Collection[str], ranked: Sequence[str], k: int | None) -> float:
    """1.0 if any gold id was found, else 0.0.

    >>> success_at_k({"a", "b"}, ["c", "a"], 2)
    1.0
    """
    return float(bool(_places(gold, ranked, k)))


def all_supporting_at_k(gold: Collection[str], ranked: Sequence[str], k: int | None) -> float:
    """1.0 if every gold id was found, else 0.0: what a question of several hops needs.

    >>> all_supporting_at_k({"a", "b"}, ["c", "a"], 2)
    0.0
    """
    return float(len(_places(gold, ranked, k)) == len(set(gold)))


def mrr(gold: Collection[str], ranked: Sequence[str], k: int | None = None) -> float:
    """1 / place of the first gold id, from 1; 0.0 if none was found.

    >>> mrr({"a", "b"}, ["c", "a", "b"])
    0.5
    """
    places = _places(gold, ranked, k)
    return 1 / places[0] if places else 0.0


def average_precision(gold: Collection[str], ranked: Sequence[str], k: int | None = None) -> float:
    """Mean over all of `gold` of the precision at each one's place, 0 for those not found.

    As trec_eval's map and map_cut: divided by the number of gold ids also where `k` is smaller, so that 1.0 may be out
    of reach there.

    >>> average_precision({"a"}, ["c", "a"])
    0.5
    """
    places = _places(gold, ranked, k)
    return sum(count / place for count, place in enumerate(places, start=1)) / len(set(gold))


def ndcg_at_k(gold: Collection[str], ranked: Sequence[str], k: int | None) -> float:
    """Discounted gain (1 / log2(place + 1) for each gold id) over that of the best ranking of `k` (Järvelin &
    Kekäläinen, 2002).

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
