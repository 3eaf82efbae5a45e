"""Sits a test set before it is handed out: rankers too plain to be chosen, so that none of them is judged by it.

What they find of a question's documents tells how hard it is (`item_response`). A ranker that chose the questions and
was then measured by them would gain or lose by the choice alone.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.language.text import content_words, sentences
from kraq_dspy.ports import Embedder, VectorSearch
from kraq_dspy.records import Chunk

RANKERS = ("letters", "texts without titles", "titles and openings", "signs of vectors")
"""By runs of three letters; by words, without the titles; by the title's words and those of the first sentence; by the
signs of embeddings alone."""
FOUND_AT = 5
"""Documents among which they have to find a question's."""


class Rankers:
    """The rankers of `RANKERS` over the passages of an index."""

    def __init__(self, chunks: Sequence[Chunk], vectors: VectorSearch, embedder: Embedder) -> None:
        self._documents = [chunk.document_id for chunk in chunks]
        self._embedder = embedder
        self._letters = Postings(three_letters(chunk.passage) for chunk in chunks)
        self._texts = Postings(content_words(chunk.text) for chunk in chunks)
        self._openings = Postings(content_words(_opening(chunk)) for chunk in chunks)
        embedded = vectors.vectors([chunk.id for chunk in chunks])
        self._centre = embedded.mean(axis=0)
        self._signs = np.sign(embedded - self._centre)

    def recalls(self, questions: Sequence[str], documents: Sequence[Collection[str]]) -> NDArray[np.float64]:
        """Return shares of each question's documents that each ranker found: float64 `[questions, rankers]`."""
        shares = np.zeros((len(questions), len(RANKERS)))
        if not questions:
            return shares

        embedded = np.sign(self._embedder.encode_queries(list(questions)) - self._centre)
        for row, (question, gold) in enumerate(zip(questions, documents, strict=True)):
            words = content_words(question)
            rankings = (
                self._letters.scores(three_letters(question)),
                self._texts.scores(words),
                self._openings.scores(words),
                self._signs @ embedded[row],
            )
            for column, scores in enumerate(rankings):
                shares[row, column] = len(set(gold) & self._first(scores)) / max(1, len(gold))
        return shares

    def _first(self, scores: NDArray[np.floating[Any]]) -> set[str]:
        """Return the documents that come first, several passages of one counted once."""
        first: dict[str, None] = {}
        for place in np.argsort(-scores, kind="stable"):
            first[self._documents[place]] = None
            if len(first) == FOUND_AT:
                break
        return set(first)


class Postings:
    """Cosines between tf-idf vectors of terms, by an inverted list.

    >>> Postings([["ada", "london"], ["rhine"]]).scores(["rhine"]).round(1).tolist()
    [0.0, 1.0]
    """

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        counts_by_text = [Counter(terms) for terms in texts]
        self._size = len(counts_by_text)
        self._idf = _inverse_frequencies(counts_by_text)

        rows: defaultdict[str, list[int]] = defaultdict(list)
        shares: defaultdict[str, list[float]] = defaultdict(list)
        for row, counts in enumerate(counts_by_text):
            weights: dict[str, float] = {}
            for term, n_times in counts.items():
                weights[term] = (1 + math.log(n_times)) * self._idf[term]

            length = math.hypot(*weights.values()) or 1.0
            for term, weight in weights.items():
                rows[term].append(row)
                shares[term].append(weight / length)

        self._lists: dict[str, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}
        for term in rows:
            self._lists[term] = np.array(rows[term], np.int64), np.array(shares[term], np.float32)

    def scores(self, terms: Sequence[str]) -> NDArray[np.float64]:
        """Return float64 `[texts]`: proportional to the cosine with each text, 0 if no term is shared."""
        scores = np.zeros(self._size)
        for term, number in Counter(terms).items():
            if term in self._lists:
                rows, shares = self._lists[term]
                scores[rows] += (1 + math.log(number)) * self._idf[term] * shares
        top = scores.max(initial=0.0)
        return scores / top if top else scores


def _inverse_frequencies(counts_by_text: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """Return the weight of each term: the larger, the fewer texts have it."""
    texts_with: Counter[str] = Counter()
    for counts in counts_by_text:
        texts_with.update(counts.keys())

    size = len(counts_by_text)
    return {term: math.log(1 + size / n_texts) for term, n_texts in texts_with.items()}


def three_letters(text: str) -> list[str]:
    """Return runs of three letters within words, ends of words included.

    >>> three_letters("Ada is")
    [' ad', 'ada', 'da ', ' is', 'is ']
    """
    words = (f" {word} " for word in text.lower().split())
    return [word[place : place + 3] for word in words for place in range(len(word) - 2)]


def _opening(chunk: Chunk) -> str:
    return f"{chunk.title} {next(iter(sentences(chunk.text)), '')}"
