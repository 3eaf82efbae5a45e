"""Declares the systems that `two_halves.py` compares: 21 that anybody might choose, 7 broken on purpose."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from kraq_dspy import Workspace
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.ports import Embedder, Vectors
from kraq_dspy.records import Chunk, Document
from kraq_dspy.retrievers import words_and_meaning
from kraq_dspy.retrievers.in_memory import Corpus
from kraq_dspy.settings import ChunkSettings

K = 5
"""Documents among which evidence is looked for: recall@5."""
Scores = NDArray[np.float64]
Find = Callable[[str], list[str]]
"""Ids of documents for a question, best first."""


@dataclass(frozen=True)
class System:
    """`make` makes it of an index; a `broken` one was broken on purpose."""

    name: str
    make: Callable[[Workspace], Find]
    broken: bool = False


class CachedQueries:
    """An encoder that encodes a question once: the systems are asked the same ones."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension
        self.encode_passages = embedder.encode_passages
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        unknown = [text for text in dict.fromkeys(texts) if text not in self._known]
        if unknown:
            self._known |= dict(zip(unknown, self._embedder.encode_queries(unknown), strict=True))
        rows: Vectors = np.array([self._known[text] for text in texts])
        return rows


@contextmanager
def opened(path: Path) -> Iterator[tuple[Workspace, CachedQueries]]:
    """An index with its own encoder, where no question is encoded twice and no cosine of words computed twice."""
    with Workspace.open(path) as plain:
        encoder = CachedQueries(plain.embedder)
    known = cache(words_and_meaning.sparse_cosines)

    def remembered(question: str, passages: Sequence[str]) -> Scores:
        return known(question, tuple(passages))

    with patch.object(words_and_meaning, "sparse_cosines", remembered), Workspace.open(path, embedder=encoder) as space:
        yield space, encoder


def by_name(name: str, k: int = K * 2, **options: Any) -> Callable[[Workspace], Find]:
    def make(space: Workspace) -> Find:
        retrieve = space.retriever(name, **options)
        return lambda question: documents_of(hit.chunk for hit in retrieve(question, k))

    return make


def documents_of(chunks: Any) -> list[str]:
    return list(dict.fromkeys(chunk.document_id for chunk in chunks))[:K]


def over_vectors(
    change: Callable[[NDArray[np.float32]], NDArray[np.float32]] = lambda vectors: vectors, prefix: str = ""
) -> Callable[[Workspace], Find]:
    """Dense search over changed vectors, or for questions with a prefix that does not belong there."""

    def make(space: Workspace) -> Find:
        chunks = list(space.index.all(Chunk))
        passages = change(space.index.chunk_vectors.vectors([chunk.id for chunk in chunks]))

        def find(question: str) -> list[str]:
            vector = change(space.embedder.encode_queries([prefix + question]))[0]
            return documents_of(chunks[place] for place in np.argsort(-(passages @ vector), kind="stable")[: K * 2])

        return find

    return make


def first_dimensions(count: int) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    def change(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        cut = vectors[:, :count]
        changed: NDArray[np.float32] = cut / np.maximum(np.linalg.norm(cut, axis=1, keepdims=True), 1e-9)
        return changed

    return change


def read_anew(change: Callable[[Document], Document], tokens: int = 256) -> Callable[[Workspace], Find]:
    """Dense search over the documents as changed, cut into chunks of so many tokens."""

    def make(space: Workspace) -> Find:
        documents = [change(document) for document in space.index.all(Document)]
        settings = ChunkSettings(tokens=tokens, overlap=min(16, tokens // 4))
        corpus = Corpus.from_texts(documents, embedder=space.embedder, settings=settings)
        return lambda question: documents_of(hit.chunk for hit in corpus.retriever(question, K * 4))

    return make


def without_a_tenth(name: str) -> Callable[[Workspace], Find]:
    """A retriever of an index that lacks every tenth document."""

    def make(space: Workspace) -> Find:
        retrieve = space.retriever(name)
        lacking = frozenset(sorted(space.index.ids(Document))[::10])
        excluded = [chunk.id for chunk in space.index.all(Chunk) if chunk.document_id in lacking]
        return lambda question: documents_of(hit.chunk for hit in retrieve(question, K * 2, exclude=excluded))

    return make


def latent_of_words(dimensions: int) -> Callable[[Workspace], Find]:
    """Latent semantic analysis (Deerwester et al., 1990): an encoder that knows nothing but this corpus."""

    def make(space: Workspace) -> Find:
        chunks = list(space.index.all(Chunk))
        words = sorted({word for chunk in chunks for word in chunk.passage.lower().split()})
        place = {word: number for number, word in enumerate(words)}
        counts = np.zeros((len(chunks), len(words)), np.float32)
        for row, chunk in enumerate(chunks):
            for word in chunk.passage.lower().split():
                counts[row, place[word]] += 1
        idf = np.log(len(chunks) / np.maximum((counts > 0).sum(axis=0), 1))
        from scipy.sparse import csr_matrix
        from scipy.sparse.linalg import svds

        weighted = np.log1p(counts) * idf
        _, _, right = svds(csr_matrix(weighted), k=min(dimensions, min(weighted.shape) - 1), random_state=0)
        passages = weighted @ right.T
        passages /= np.maximum(np.linalg.norm(passages, axis=1, keepdims=True), 1e-9)

        def find(question: str) -> list[str]:
            vector = np.zeros(len(words), np.float32)
            for word in question.lower().rstrip("?").split():
                if word in place:
                    vector[place[word]] += 1
            weighted = (np.log1p(vector) * idf) @ right.T
            return documents_of(chunks[row] for row in np.argsort(-(passages @ weighted), kind="stable")[: K * 2])

        return find

    return make


def untitled(document: Document) -> Document:
    return replace(document, title="")


def truncated(document: Document) -> Document:
    return replace(document, text=" ".join(document.text.split()[:25]))


RRF = 60
"""Constant of reciprocal rank fusion (Cormack et al., 2009)."""
LATENT = 64
"""Dimensions of latent semantic analysis (Deerwester et al., 1990)."""

Score = Callable[[str], Scores]
"""A score for each document, float64 `[documents]`; a higher one is better."""
MakeScore = Callable[[Workspace, Sequence[Document]], Score]


def words(space: Workspace, documents: Sequence[Document]) -> Score:
    return _tf_idf([f"{document.title} {document.text}" for document in documents])


def words_without_titles(space: Workspace, documents: Sequence[Document]) -> Score:
    return _tf_idf([document.text for document in documents])


def words_of_first_sentence(space: Workspace, documents: Sequence[Document]) -> Score:
    return _tf_idf([f"{document.title} {first_sentence(document)}" for document in documents])


def characters(space: Workspace, documents: Sequence[Document]) -> Score:
    texts = [f"{document.title} {document.text}" for document in documents]
    return _tf_idf(texts, analyzer="char_wb", ngram_range=(3, 5))


def latent(space: Workspace, documents: Sequence[Document]) -> Score:
    weigh = TfidfVectorizer(sublinear_tf=True)
    weighted = weigh.fit_transform(f"{document.title} {document.text}" for document in documents)
    reduce = TruncatedSVD(min(LATENT, min(weighted.shape) - 1), random_state=0)
    passages = _normalised(reduce.fit_transform(weighted))

    def score(question: str) -> Scores:
        found: Scores = passages @ _normalised(reduce.transform(weigh.transform([question])))[0]
        return found

    return score


def meaning_of_first_sentence(space: Workspace, documents: Sequence[Document]) -> Score:
    sentences = [f"{document.title}. {first_sentence(document)}" for document in documents]
    passages = space.embedder.encode_passages(sentences)

    def score(question: str) -> Scores:
        return np.asarray(passages @ space.embedder.encode_queries([question])[0], np.float64)

    return score


def fused(first: MakeScore, second: MakeScore) -> MakeScore:
    """Reciprocal rank fusion of two."""

    def make(space: Workspace, documents: Sequence[Document]) -> Score:
        scores = first(space, documents), second(space, documents)

        def score(question: str) -> Scores:
            total = np.zeros(len(documents))
            for each in scores:
                places = np.empty(len(documents))
                places[np.argsort(-each(question), kind="stable")] = np.arange(len(documents))
                total += 1 / (RRF + 1 + places)
            return total

        return score

    return make


def first_sentence(document: Document) -> str:
    start, end = next(iter(sentence_spans(document.text)), (0, len(document.text)))
    return document.text[start:end]


def _tf_idf(texts: Sequence[str], **options: object) -> Score:
    weigh = TfidfVectorizer(sublinear_tf=True, **options)
    weighted = weigh.fit_transform(texts)

    def score(question: str) -> Scores:
        found: Scores = (weighted @ weigh.transform([question]).T).toarray()[:, 0]
        return found

    return score


def _normalised(rows: Scores) -> Scores:
    unit: Scores = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return unit


def by_score(make_score: MakeScore) -> Callable[[Workspace], Find]:
    def make(space: Workspace) -> Find:
        documents = list(space.index.all(Document))
        score = make_score(space, documents)

        def find(question: str) -> list[str]:
            best = np.argsort(-score(question), kind="stable")[:K]
            return [documents[place].id for place in best]

        return find

    return make


REGISTERED = ("dense", "bm25", "hybrid", "fusion", "sentence-window", "adaptive", "pagerank", "combined")
UNLIKE = (
    System("tf-idf", by_score(words)),
    System("tf-idf, no titles", by_score(words_without_titles)),
    System("tf-idf, first sentence", by_score(words_of_first_sentence)),
    System("characters", by_score(characters)),
    System("latent, 64", by_score(latent)),
    System("dense, first sentence", by_score(meaning_of_first_sentence)),
    System("tf-idf and latent, fused", by_score(fused(words, latent))),
    System("characters and first sentence, fused", by_score(fused(characters, meaning_of_first_sentence))),
)
"""They know neither a graph nor the index's questions."""
SYSTEMS = (
    *(System(name, by_name(name)) for name in REGISTERED),
    *UNLIKE,
    System("hybrid, .2 of meaning", by_name("hybrid", weight=0.2)),
    System("pagerank over dense", by_name("pagerank", over="dense")),
    System("dense, chunks of 64", read_anew(lambda document: document, 64)),
    System("dense, chunks of 32", read_anew(lambda document: document, 32)),
    System("latent, 100", latent_of_words(100)),
    System("dense, 64 dimensions", over_vectors(first_dimensions(64)), broken=True),
    System("dense, 24 dimensions", over_vectors(first_dimensions(24)), broken=True),
    System("dense, wrong prefix", over_vectors(prefix="passage: title: none text: "), broken=True),
    System("dense, no titles", read_anew(untitled), broken=True),
    System("dense, 25 words", read_anew(truncated), broken=True),
    System("dense, a tenth missing", without_a_tenth("dense"), broken=True),
    System("bm25, a tenth missing", without_a_tenth("bm25"), broken=True),
)
SIXTEEN = (*REGISTERED, *(system.name for system in UNLIKE))
"""Registered before the first run."""
OTHERS = tuple(system.name for system in SYSTEMS if not system.broken and system.name not in SIXTEEN)
"""Five that were kept back until the rule was chosen."""
