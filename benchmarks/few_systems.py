"""Declares the sixteen systems of `few_questions.py`: eight retrievers of this library, and eight unlike them.

The unlike ones know neither a graph nor representative questions: words and characters weighed by tf-idf, latent
semantic analysis, rank fusions of these, and search over first sentences alone.
"""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from testset_systems import Find, K, Scores, System, by_name

from kraq_dspy import Workspace
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.records import Document

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
FEW_SYSTEMS = (
    *(System(name, by_name(name)) for name in REGISTERED),
    System("tf-idf", by_score(words)),
    System("tf-idf, no titles", by_score(words_without_titles)),
    System("tf-idf, first sentence", by_score(words_of_first_sentence)),
    System("characters", by_score(characters)),
    System("latent, 64", by_score(latent)),
    System("dense, first sentence", by_score(meaning_of_first_sentence)),
    System("tf-idf and latent, fused", by_score(fused(words, latent))),
    System("characters and first sentence, fused", by_score(fused(characters, meaning_of_first_sentence))),
)
"""Registered before the first run."""
