"""Dense and BM25 retrieval beside independent libraries on MuSiQue: recall@5, @10 and @15 of each.

    python benchmarks/independent_retrieval.py --index DIR [--data ../shared/data/musique]

`--index` is the one that `benchmarks/retrieval_musique.py --index DIR` keeps. scikit-learn searches the index's own
vectors, rank_bm25 (k1=1.2 and b=.75 as here) the library's own words of the same passages: once as it comes,
once with the library's assumed average length of 256 tokens and its idf, which stays above 0 (Lucene's).
"""

import argparse
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rank_bm25 import BM25Okapi
from retrieval_musique import BUDGETS, DATA, rows_of
from rich.console import Console
from rich.table import Table
from sklearn.neighbors import NearestNeighbors

from kraq_dspy.embedders import load_embedder
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.programs.retrievers import BM25Retriever, DenseRetriever
from kraq_dspy.records import Chunk
from kraq_dspy.stores.index import Index
from kraq_dspy.stores.vectors.points import words_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the questions")
    parser.add_argument("--index", type=Path, required=True, help="kept by retrieval_musique.py")
    options = parser.parse_args()
    questions = rows_of(options.data / "questions.jsonl.gz")
    most = max(BUDGETS)
    with Index.open(options.index) as index:
        embedder = load_embedder(index.manifest.settings.encoder)
        index.require_encoder(embedder)
        chunks = list(index.all(Chunk))
        documents = [chunk.document_id for chunk in chunks]
        stored = index.chunk_vectors.vectors([chunk.id for chunk in chunks])
        nearest = NearestNeighbors(n_neighbors=most, metric="cosine", algorithm="brute").fit(stored)
        okapi = BM25Okapi([words_of(chunk.passage) for chunk in chunks], k1=1.2, b=0.75)
        engine_like = BM25Okapi([words_of(chunk.passage) for chunk in chunks], k1=1.2, b=0.75)
        engine_like.avgdl = 256
        for token in engine_like.idf:
            n = sum(token in passage for passage in engine_like.doc_freqs)
            engine_like.idf[token] = math.log(1 + (len(chunks) - n + 0.5) / (n + 0.5))
        dense = DenseRetriever(index, index.chunk_vectors, embedder)
        bm25 = BM25Retriever(index, index.chunk_vectors)

        def by_library(question: str) -> Sequence[int]:
            order: Sequence[int] = nearest.kneighbors(embedder.encode_queries([question]))[1][0]
            return order

        def by_okapi(question: str, model: BM25Okapi) -> Sequence[int]:
            scores = model.get_scores(list(dict.fromkeys(words_of(question))))
            order: Sequence[int] = np.argsort(-scores, kind="stable")[:most].tolist()
            return order

        systems: dict[str, Callable[[str], list[str]]] = {
            "dense": lambda question: [hit.chunk.document_id for hit in dense(question, most)],
            "scikit-learn": lambda question: [documents[row] for row in by_library(question)],
            "bm25": lambda question: [hit.chunk.document_id for hit in bm25(question, most)],
            "rank_bm25 as it comes": lambda question: [documents[row] for row in by_okapi(question, okapi)],
            "rank_bm25, length and idf as here": lambda question: [
                documents[row] for row in by_okapi(question, engine_like)
            ],
        }
        table = Table("retriever", *[f"recall@{k}" for k in BUDGETS])
        for name, find in systems.items():
            ranked = [(frozenset(row["supporting_ids"]), find(row["question"])) for row in questions]
            means = [statistics.mean(recall_at_k(gold, order[:k], k) for gold, order in ranked) for k in BUDGETS]
            table.add_row(name, *[f"{mean:.3f}" for mean in means])
    Console().print(table)


if __name__ == "__main__":
    main()
