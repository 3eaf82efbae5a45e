"""Retrieves by meaning (dense), by words (BM25), and by both together: a weighted sum of cosines, or fused ranks."""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.one_blas_thread import product
from kraq_dspy._internal.options import require_options
from kraq_dspy._internal.turns import IN_TURN
from kraq_dspy.ports import ChunkSource, Embedder, Retriever, VectorSearch, VectorStore
from kraq_dspy.records import Hit
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.hits import RetrievalRequest, Retrieving, fused, ranked, to_hits
from kraq_dspy.retrievers.scale_of_cosines import ScaleOfCosines
from kraq_dspy.spec import RetrieverSpec, option


class DenseRetriever(Retrieving):
    """Retrieves by meaning alone: the cosine of embeddings. `why` is "dense".

    Args:
        chunks: the source of the passages (`space.index`).
        vectors: the store that searches by embeddings. `embedder` made the embeddings.
        embedder: the encoder of the questions.

    `score` is the cosine of question and passage, in [-1, 1].

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> dense = DenseRetriever(space.index, space.index.chunk_vectors, space.embedder)
    >>> [hit.chunk.title for hit in dense("Where did Ada live?", 1)]
    ['Ada']
    """

    def __init__(self, chunks: ChunkSource, vectors: VectorSearch, embedder: Embedder) -> None:
        self.chunks = chunks
        self.vectors = vectors
        self.embedder = embedder

    def find(self, request: RetrievalRequest) -> list[Hit]:
        vector = request.embedded_by(self.embedder)
        (scored,) = self.vectors.search(vector[None, :], request.k, exclude=request.exclude, filters=request.filters)
        return to_hits(self.chunks, scored, request.question, "dense")


class BM25Retriever(Retrieving):
    """Retrieves by words alone: BM25. `why` is "bm25".

    Args:
        chunks: the source of the passages (`space.index`).
        vectors: the store that searches by words (`space.index.chunk_vectors`).

    `score` is the BM25 score, above 0 and without an upper bound. Chunks that share no word with the question are not
    found, so there may be fewer than `k` hits.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> [hit.chunk.title for hit in BM25Retriever(space.index, space.index.chunk_vectors)("Where did Ada live?", 2)]
    ['Ada']
    """

    def __init__(self, chunks: ChunkSource, vectors: VectorStore) -> None:
        self.chunks = chunks
        self.vectors = vectors

    def find(self, request: RetrievalRequest) -> list[Hit]:
        scored = self.vectors.search_text(request.question, request.k, exclude=request.exclude, filters=request.filters)
        return to_hits(self.chunks, scored, request.question, "bm25")


@dataclass(frozen=True)
class HybridOptions:
    weight: float = option(0.5, "Weight of meaning; words get the rest (K2RAG's lambda, 0.8 there).", least=0, most=1)
    okapi: float = option(0.0, "Weight of the BM25 score, added on top.", least=0)
    pool: int = option(50, "Candidates from each side.", least=1)


@dataclass(eq=False, repr=False)
class HybridRetriever(Retrieving):
    """Retrieves by a weighted sum of two cosines, of meaning and of words (K2RAG, equations 3 and 4). `why` is
    "hybrid".

    Args:
        chunks: the source of the passages (`space.index`).
        vectors: the store that searches by embeddings and by words (`space.index.chunk_vectors`).
        embedder: the encoder of the questions.
        weight: the weight of meaning, in [0, 1]: the paper's lambda. The paper uses 0.8; 0.5 found more on musique.
        okapi: the weight of a further term, 0 or more: BM25 score / best BM25 score. The paper has no such term.
        pool: the number of candidates by embedding, and of candidates by BM25, at least `k`.

    Raises:
        ValueError: for an option out of range.

    `score` is `weight * cos(dense) + (1 - weight) * cos(sparse)`, plus the term of `okapi`. The sparse vectors are
    tf-idf over the candidates (`sparse_cosines`), because the scores of the paper's Okapi BM25 are not cosines. If
    all cosines of an encoder are high, `ScaleOfCosines` standardizes them.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> hybrid = HybridRetriever(space.index, space.index.chunk_vectors, space.embedder, weight=0.5)
    >>> [hit.chunk.title for hit in hybrid("Where did Ada live?", 2)]
    ['Ada', 'London']
    """

    chunks: ChunkSource
    vectors: VectorStore
    embedder: Embedder
    _: KW_ONLY
    weight: float = HybridOptions.weight
    okapi: float = HybridOptions.okapi
    pool: int = HybridOptions.pool

    def __post_init__(self) -> None:
        require_options(HybridOptions, weight=self.weight, okapi=self.okapi, pool=self.pool)
        self._scaled = ScaleOfCosines(self.vectors)

    def find(self, request: RetrievalRequest) -> list[Hit]:
        question, exclude, filters = request.question, request.exclude, request.filters
        size = max(request.k, self.pool)

        vector = request.embedded_by(self.embedder)
        (by_meaning,) = self.vectors.search(vector[None, :], size, exclude=exclude, filters=filters)
        by_words = self.vectors.search_text(question, size, exclude=exclude, filters=filters)
        ids = sorted({chunk_id for chunk_id, _ in (*by_meaning, *by_words)})
        if not ids:
            return []

        chunks = self.chunks.chunks_by_id(ids)
        cosines_of_meaning = product(self.vectors.vectors(ids), vector)
        dense = self._scaled(cosines_of_meaning, vector)
        sparse = sparse_cosines(question, [chunk.passage for chunk in chunks])
        scores = self.weight * dense + (1 - self.weight) * sparse

        if self.okapi and by_words:
            highest = by_words[0][1]
            share_of_highest = {chunk_id: score / highest for chunk_id, score in by_words}
            scores += self.okapi * np.array([share_of_highest.get(chunk_id, 0.0) for chunk_id in ids])

        chunk_of = dict(zip(ids, chunks, strict=True))
        score_of = dict(zip(ids, scores.tolist(), strict=True))
        return ranked(chunk_of, score_of, question, request.k, "hybrid")


@dataclass(frozen=True)
class FusionOptions:
    pool: int = option(100, "Candidates from each side.", least=1)
    constant: float = option(60.0, "Added to each rank: the larger, the less the first ones count.", least=0)


class FusionRetriever(Retrieving):
    """Fuses the rankings of several retrievers by reciprocal rank (Cormack et al., 2009). `why` is "fusion".

    Args:
        retrievers: the retrievers, at least one.
        pool: the number of hits of each retriever, at least `k`.
        constant: the constant of `1 / (constant + rank)`, 0 or more.

    Raises:
        ValueError: for an option out of range, or without a retriever.

    `score` is the sum of `1 / (constant + rank)` over the rankings that have the passage.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> fusion = FusionRetriever([space.retriever("dense"), space.retriever("bm25")])
    >>> [hit.why for hit in fusion("Where did Ada live?", 1)]
    ['fusion']
    """

    def __init__(
        self,
        retrievers: Sequence[Retriever],
        *,
        pool: int = FusionOptions.pool,
        constant: float = FusionOptions.constant,
    ) -> None:
        if not retrievers:
            raise ValueError("There are no retrievers to fuse; expected one or more.")

        require_options(FusionOptions, pool=pool, constant=constant)
        self.retrievers = tuple(map(as_retriever, retrievers))
        self.pool = pool
        self.constant = constant

    def find(self, request: RetrievalRequest) -> list[Hit]:
        larger = replace(request, k=max(request.k, self.pool))
        rankings = (larger.send_to(retrieve) for retrieve in self.retrievers)
        return fused(rankings, self.constant, request.question, request.k, "fusion")


DENSE = RetrieverSpec(
    "dense",
    "Passages with the nearest embeddings: the papers' baseline.",
    lambda space, options: DenseRetriever(space.index, space.index.chunk_vectors, space.embedder),
    "DenseRetriever",
)
BM25 = RetrieverSpec(
    "bm25",
    "Exact names and terms, without an encoder.",
    lambda space, options: BM25Retriever(space.index, space.index.chunk_vectors),
    "BM25Retriever",
)
HYBRID = RetrieverSpec(
    "hybrid",
    "Cosines of meaning and of words, weighted.",
    lambda space, options: HybridRetriever(space.index, space.index.chunk_vectors, space.embedder, **asdict(options)),
    "HybridRetriever",
    HybridOptions,
    source="K2RAG paper, equations 3 and 4",
)
FUSION = RetrieverSpec(
    "fusion",
    "Ranks by meaning and by words, fused.",
    lambda space, options: FusionRetriever([space.retriever("dense"), space.retriever("bm25")], **asdict(options)),
    "FusionRetriever",
    FusionOptions,
    source="Cormack et al., 2009",
)


_WORD = re.compile(r"\w+")


@IN_TURN
def sparse_cosines(question: str, passages: Sequence[str]) -> NDArray[np.float64]:
    """float64 `[n_passages]`, each in [0, 1]: cosine between the tf-idf vectors of the question and of each passage.

    A word weighs (1 + ln tf) * idf, with the idf of BM25 taken over `passages` alone. So nothing has to be known of the
    corpus, and a word that all candidates share says nothing about which of them is better. Words that no passage has
    do not count for the question's length either. Figures that the question does not name do not count for a passage's
    length: nearly each figure of a table is a rare word, so a table that has the question's words would be nearer to
    none of them.
    """
    terms = [_terms_of(passage) for passage in passages]
    of_question: dict[str, float] = {}
    idf_of_word: dict[str, float] = {}
    for word, count in Counter(_words(question)).items():
        n_with = sum(word in each.weights for each in terms)
        if n_with:
            idf_of_word[word] = float(_idf(n_with, len(passages)))
            of_question[word] = (1 + math.log(count)) * idf_of_word[word]

    cosines = np.zeros(len(passages))
    length = math.hypot(*of_question.values())
    if not length:
        return cosines

    lengths = _lengths(terms, of_question).tolist()
    for row, each in enumerate(terms):
        shared = [word for word in of_question if word in each.weights]
        dot = sum(of_question[word] * (each.weights[word] * idf_of_word[word]) for word in shared)
        if dot:
            cosines[row] = dot / (length * lengths[row])
    return cosines


@dataclass(frozen=True, slots=True)
class _Terms:
    """The different words of a passage: each with its weight, 1 + ln tf; their hashes; the weights as an array; and the
    places of the figures."""

    weights: Mapping[str, float]
    hashes: NDArray[np.int64]
    values: NDArray[np.float64]
    figures: Mapping[str, int]


@lru_cache(maxsize=1024)
def _terms_of(passage: str) -> _Terms:
    """Kept, since the same passages are candidates again and again."""
    weights = {word: 1 + math.log(count) for word, count in Counter(_words(passage)).items()}
    hashes = np.fromiter(map(hash, weights), np.int64, len(weights))
    figures = {word: place for place, word in enumerate(weights) if word[0].isdigit()}
    return _Terms(weights, hashes, np.fromiter(weights.values(), np.float64, len(weights)), figures)


def _lengths(terms: Sequence[_Terms], of_question: Collection[str]) -> NDArray[np.float64]:
    """float64 `[n_passages]`: the length of each passage's tf-idf vector without figures that the question lacks. Words
    are counted by their hashes of 64 bits, at once for all passages."""
    hashes = np.concatenate([each.hashes for each in terms])
    values = np.concatenate([_without_other_figures(each, of_question) for each in terms])
    rows = np.repeat(np.arange(len(terms)), [len(each.weights) for each in terms])

    _, place, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    weighted = values * _idf(counts, len(terms))[place]
    lengths: NDArray[np.float64] = np.sqrt(np.bincount(rows, weighted**2, len(terms)))
    return lengths


def _without_other_figures(terms: _Terms, of_question: Collection[str]) -> NDArray[np.float64]:
    """The weights, with 0 for figures that the question does not name."""
    left_out = [place for figure, place in terms.figures.items() if figure not in of_question]
    if not left_out:
        return terms.values
    values = terms.values.copy()
    values[left_out] = 0.0
    return values


def _idf(n_with: Any, total: int) -> Any:
    """How rare a word is that `n_with` of `total` passages have; of one word or of an array."""
    return np.log(1 + (total - n_with + 0.5) / (n_with + 0.5))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
