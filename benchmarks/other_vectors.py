"""Measures retrieval over one index whose passages, or questions, are embedded by other encoders.

    OMP_NUM_THREADS=1 python benchmarks/other_vectors.py --data ../shared/data popqa=popqa.kraq squad=squad.kraq

An encoder is written as in `encoders.py`: "minilm:bf16", "multilingual-e5-small", or "minilm:bf16+int8" with another
precision for questions. If the index was made by another one, a copy gets its vectors of the chunks, so that graph and
words are the same. Recall at 5 and 10 passages of `dense` and `adaptive`, over up to `--questions` questions whose
evidence the index holds; differences from the first encoder are paired, with 95 % bootstrap intervals.
"""

import argparse
import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from encoders import BUDGETS, RETRIEVERS, AskedBy, Column, difference_to

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.sync import batches, chunk_point
from kraq_dspy.eval.datasets import Example, load_dataset
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.ports import Embedder
from kraq_dspy.records import Chunk
from kraq_dspy.settings import EncoderSettings
from kraq_dspy.workspace import Workspace

ENCODERS = ("minilm:bf16", "minilm:bf16+int8", "minilm:int8", "minilm:int8+bf16")


def encoder_named(text: str) -> Embedder:
    name, _, precision = text.partition(":")
    return load_embedder(resolve_encoder(EncoderSettings(name, precision=precision or "auto")))


def answerable(path: Path, name: str, data: Path, most: int) -> list[Example]:
    """Questions, drawn by a seed, all of whose evidence is in the index."""
    with Index.open(path) as index:
        held = {chunk.document_id for chunk in index.all(Chunk)}
    known = [each for each in load_dataset(name, data).examples if each.supporting_ids]
    whole = [each for each in known if held.issuperset(each.supporting_ids)]
    random.Random(0).shuffle(whole)
    return whole[:most]


def embed_again(path: Path, embedder: Embedder) -> None:
    """Replace the vectors of all chunks."""
    with Index.open(path, write=True) as index:
        chunks = list(index.all(Chunk))
        for some in batches(chunks, 256):
            points = [chunk_point(chunk) for chunk in some]
            texts = [point.text for point in points]
            payloads = [point.payload for point in points]
            index.chunk_vectors.upsert([point.id for point in points], embedder.encode_passages(texts), texts, payloads)
        index.update_manifest(complete=True)


def recalls(path: Path, asking: Embedder, examples: Sequence[Example]) -> dict[Column, list[float]]:
    """A recall for each question, by retriever and number of passages."""
    with Index.open(path) as index:
        named = index.manifest.encoder_name
    scores: dict[Column, list[float]] = {}
    with Workspace.open(path, embedder=AskedBy(named, asking)) as space:
        for name in RETRIEVERS:
            retrieve = space.retriever(name)
            for example in examples:
                document_ids = [hit.chunk.document_id for hit in retrieve(example.question, max(BUDGETS))]
                for k in BUDGETS:
                    recall = recall_at_k(example.supporting_ids, document_ids[:k], None)
                    scores.setdefault((name, k), []).append(recall)
    return scores


def measure(name: str, path: Path, data: Path, encoders: Sequence[str], questions: int) -> None:
    """Print a row for each encoder."""
    examples = answerable(path, name, data, questions)
    with Index.open(path) as index:
        made_by, chunks = index.manifest.encoder_name, index.count(Chunk)

    base: dict[Column, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for spec in encoders:
            of_passages, _, precision = spec.partition("+")
            embedder = encoder_named(of_passages)
            asking = encoder_named(f"{of_passages.partition(':')[0]}:{precision}") if precision else embedder

            copy = Path(folder) / of_passages.replace(":", "-")
            if embedder.name != made_by and not copy.exists():
                shutil.copytree(path, copy, ignore=shutil.ignore_patterns("lock"))
                embed_again(copy, embedder)

            scores = recalls(path if embedder.name == made_by else copy, asking, examples)
            base = base or scores
            if scores is base:
                cells = [f"{np.mean(base[column]):.3f}" for column in base]
            else:
                cells = [difference_to(base[column], scores[column]) for column in scores]
            print(f"| {name}, {chunks:,} | {len(examples)} | {spec} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="NAME=INDEX")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoders", nargs="+", default=ENCODERS)
    parser.add_argument("--questions", type=int, default=100)
    args = parser.parse_args()

    columns = [f"{retriever} @{k}" for retriever in RETRIEVERS for k in BUDGETS]
    print(f"| set, chunks | n | encoder | {' | '.join(columns)} |")
    print(f"|{'---|' * (len(columns) + 3)}")
    for each in args.sets:
        name, _, path = each.partition("=")
        measure(name, Path(path), args.data, args.encoders, args.questions)


if __name__ == "__main__":
    main()
