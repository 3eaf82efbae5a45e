"""Times combined retrieval over a large index, the encoder's time left out.

    python benchmarks/query.py [--chunks 15000] [--questions 25000] [--json]

Random unit vectors of 384 dimensions in the real store; each query finds its two nearest questions and then retrieves
three times, excluding what was found. The median is to be under 10 ms.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from stand_in import machine

from kraq_dspy.config import Settings
from kraq_dspy.ports import Vectors
from kraq_dspy.programs.retrievers.combined import CombinedRetriever
from kraq_dspy.programs.retrievers.dense import DenseRetriever
from kraq_dspy.programs.retrievers.questions import NearestQuestions
from kraq_dspy.records import Chunk, Question, content_id
from kraq_dspy.stores.index import Index

DIMENSION = 384


class NoEncoder:
    """The queries come as vectors."""

    name = "random"
    dimension = DIMENSION

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        raise AssertionError("the encoder's time is left out")

    encode_passages = encode_queries


def unit_rows(count: int, seed: int) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSION), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def fill(index: Index, n_chunks: int, n_questions: int) -> None:
    chunks = [
        Chunk(content_id("chunk", str(i)), f"document {i // 5}", i % 5, 0, 20, f"text of chunk {i:08d}", 300)
        for i in range(n_chunks)
    ]
    questions = [
        Question(content_id("question", str(i)), f"Question {i}?", "kraq", None, 0, (), ()) for i in range(n_questions)
    ]
    index.add(chunks)
    index.add(questions)
    vectors = unit_rows(n_chunks, seed=1)
    payloads = [{"document_id": chunk.document_id} for chunk in chunks]
    index.chunk_vectors.upsert([c.id for c in chunks], vectors, [c.text for c in chunks], payloads)
    index.question_vectors.upsert(
        [q.id for q in questions], unit_rows(n_questions, seed=2), [q.text for q in questions]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=15_000)
    parser.add_argument("--questions", type=int, default=25_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.kraq"
        with Index.create(path, Settings(), encoder_name="random", encoder_dimension=DIMENSION) as index:
            fill(index, options.chunks, options.questions)
            encoder = NoEncoder()
            dense = DenseRetriever(index, index.chunk_vectors, encoder)
            finder = NearestQuestions(index, index.question_vectors, encoder)
            combined = CombinedRetriever(dense, finder, n=2, alpha=0.5)
            times: dict[str, list[float]] = {"dense": [], "combined": []}
            for vector in unit_rows(options.queries, seed=3):
                for name, retrieve in (("dense", dense), ("combined", combined)):
                    start = time.perf_counter()
                    retrieve("q", 15, vector=vector)
                    times[name].append((time.perf_counter() - start) * 1000)
    results = {
        "machine": machine(),
        "chunks": options.chunks,
        "questions": options.questions,
        **{
            f"{name}_ms": {"p50": statistics.median(taken), "p99": float(np.percentile(taken, 99))}
            for name, taken in times.items()
        },
    }
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{results['machine']}; {options.chunks} chunks, {options.questions} questions, {options.queries} queries")
    for name, taken in times.items():
        print(f"{name:9} median {statistics.median(taken):.2f} ms, p99 {np.percentile(taken, 99):.2f} ms")


if __name__ == "__main__":
    main()
