"""Dense and BM25 retrieval against scikit-learn and rank_bm25, on the same vectors and the same words."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.asset.store.vectors.points import words_of
from kraq_dspy.models.embedders.sentence import SentenceEmbedder
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Chunk, content_id
from kraq_dspy.retrievers import BM25Retriever, DenseRetriever

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hotpotqa-mini"
K = 10


@dataclass(frozen=True)
class Wikipedia:
    """60 passages in plain ASCII, and the questions. `ids` are the rows of `vectors`."""

    chunks: dict[str, Chunk]
    ids: list[str]
    vectors: Vectors
    store: LocalVectorStore
    embedder: SentenceEmbedder
    questions: list[str]

    def chunks_by_id(self, ids: Sequence[str]) -> list[Chunk]:
        return [self.chunks[chunk_id] for chunk_id in ids]


def rows(name: str) -> list[dict[str, Any]]:
    with (EXAMPLE / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def wikipedia(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wikipedia]:
    plain = islice((row for row in rows("corpus.jsonl") if (row["title"] + row["text"]).isascii()), 60)
    chunks = [
        Chunk(content_id("chunk", row["id"]), row["id"], 0, 0, len(row["text"]), row["text"], 0, title=row["title"])
        for row in plain
    ]
    embedder = SentenceEmbedder(precision="fp32")
    vectors = embedder.encode_passages([chunk.passage for chunk in chunks])
    store = LocalVectorStore(tmp_path_factory.mktemp("independent") / "chunks", embedder.dimension)
    ids = [chunk.id for chunk in chunks]
    store.upsert(ids, vectors, [chunk.passage for chunk in chunks])
    questions = [row["question"] for row in rows("questions.jsonl")]
    yield Wikipedia(dict(zip(ids, chunks, strict=True)), ids, vectors, store, embedder, questions)
    store.close()


def test_dense_retrieval_finds_what_scikit_learn_finds(wikipedia: Wikipedia) -> None:
    neighbours = pytest.importorskip("sklearn.neighbors", reason="needs sklearn: pip install 'kraq-dspy[raptor]'")
    nearest = neighbours.NearestNeighbors(n_neighbors=K, metric="cosine", algorithm="brute").fit(wikipedia.vectors)
    distances, places = nearest.kneighbors(wikipedia.embedder.encode_queries(wikipedia.questions))
    retrieve = DenseRetriever(wikipedia, wikipedia.store, wikipedia.embedder)
    for question, distance, place in zip(wikipedia.questions, distances, places, strict=True):
        hits = retrieve(question, K)
        assert [hit.score for hit in hits] == pytest.approx((1 - distance).tolist(), abs=1e-5)
        assert len({hit.chunk.id for hit in hits} & {wikipedia.ids[row] for row in place}) >= K - 1  # a tie at the end


def test_bm25_scores_are_those_of_rank_bm25_on_the_same_words(wikipedia: Wikipedia) -> None:
    library = pytest.importorskip("rank_bm25", reason="needs rank_bm25: pip install 'kraq-dspy[dev]'")
    corpus = [words_of(chunk.passage) for chunk in wikipedia.chunks.values()]
    # The engine counts with an average length of 256 words, since it does not know the corpus when it weighs a passage,
    # and with the idf that stays above 0 (Lucene's); rank_bm25 has another.
    model = library.BM25Okapi(corpus, k1=1.2, b=0.75)
    model.avgdl = 256
    for word in model.idf:
        n = sum(word in passage for passage in model.doc_freqs)
        model.idf[word] = math.log(1 + (len(corpus) - n + 0.5) / (n + 0.5))
    retrieve = BM25Retriever(wikipedia, wikipedia.store)
    for question in wikipedia.questions:
        scores = model.get_scores(list(dict.fromkeys(words_of(question))))
        hits = retrieve(question, K)
        assert [hit.score for hit in hits] == pytest.approx(np.sort(scores)[::-1][: len(hits)].tolist(), rel=1e-4)
        own = dict(zip(wikipedia.ids, scores.tolist(), strict=True))
        assert [hit.score for hit in hits] == pytest.approx([own[hit.chunk.id] for hit in hits], rel=1e-4)
