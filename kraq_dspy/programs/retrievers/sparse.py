"""Compares a question with the passages that compete for it by words: the cosine of tf-idf vectors."""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")


def sparse_cosines(question: str, passages: Sequence[str]) -> NDArray[np.float64]:
    """float64 `[n_passages]`, each in [0, 1]: cosine between the tf-idf vectors of the question and of each passage.

    A word weighs (1 + ln tf) * idf, with the idf of BM25 taken over `passages` alone. So nothing has to be known of the
    corpus, and a word that all candidates share says nothing about which of them is better. Words that no passage has
    do not count for the question's length either.
    """
    counts = [Counter(_words(passage)) for passage in passages]
    document_frequency = Counter(word for count in counts for word in count)
    idf = {
        word: math.log(1 + (len(passages) - frequency + 0.5) / (frequency + 0.5))
        for word, frequency in document_frequency.items()
    }
    question_weights = _weights(Counter(word for word in _words(question) if word in idf), idf)
    cosines = np.zeros(len(passages))
    length = _norm(question_weights)
    if not length:
        return cosines
    for row, count in enumerate(counts):
        weights = _weights(count, idf)
        product = sum(weight * weights[word] for word, weight in question_weights.items() if word in weights)
        cosines[row] = product / (length * _norm(weights)) if product else 0.0
    return cosines


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _weights(counts: Counter[str], idf: dict[str, float]) -> dict[str, float]:
    return {word: (1 + math.log(count)) * idf[word] for word, count in counts.items()}


def _norm(weights: dict[str, float]) -> float:
    return math.sqrt(sum(weight * weight for weight in weights.values()))
