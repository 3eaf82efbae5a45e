"""Embeds a text by its words: each has two places of its own, chosen by a hash."""

import math
import re
from collections import Counter
from functools import cache

from stand_in_server.passage import hash_64

WORD = re.compile(r"[^\W_]+", re.U)


def embed(text: str, dimension: int) -> list[float]:
    """A vector of norm 1, the same for the same text."""
    vector = [0.0] * dimension
    for word, count in Counter(word.lower() for word in WORD.findall(text[:40_000])).items():
        first, sign, second = _places(word, dimension)
        weight = 1.0 + math.log(count)
        vector[first] += sign * weight
        vector[second] += 0.5 * weight
    norm = math.sqrt(sum(x * x for x in vector))
    if not norm:
        vector[0] = 1.0
        return vector
    return [round(x / norm, 6) for x in vector]


@cache
def _places(word: str, dimension: int) -> tuple[int, float, int]:
    number = hash_64("emb", word)
    return number % dimension, 1.0 if (number >> 40) & 1 else -1.0, (number >> 20) % dimension
