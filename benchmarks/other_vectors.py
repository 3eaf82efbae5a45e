"""Measures retrieval over one index whose passages, or questions, are embedded by other encoders.

    OMP_NUM_THREADS=1 python benchmarks/other_vectors.py --data ../shared/data popqa=popqa.kraq squad=squad.kraq

An encoder is written as in `encoders.py`: "minilm:bf16", "multilingual-e5-small", or "minilm:bf16+int8" with another
precision for questions. If the index was made by another one, a copy gets its vectors of the chunks, so that graph and
words are the same. Recall at 5 and 10 passages of `dense` and `adaptive`, over up to `--questions` questions whose
evidence the index holds; differences from the first encoder are paired, with 95 % bootstrap intervals.

`--kept` says what becomes of the evidence that `dense` finds by another encoder and not by the first: `adaptive` found
it by the first encoder already, or finds it now, or still does not. Each is a share of recall, as is what else
`adaptive` finds and loses. "At best" is what it would gain if it lost nothing and found all that `dense` finds now.
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

Found = dict[str, list[list[str]]]
"""Ids of documents, best first, for each question, by retriever."""

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


def search(path: Path, asking: Embedder, examples: Sequence[Example]) -> Found:
    """The ids of the documents that each retriever finds, best first, for each question."""
    with Index.open(path) as index:
        named = index.manifest.encoder_name

    found: Found = {}
    with Workspace.open(path, embedder=AskedBy(named, asking)) as space:
        for name in RETRIEVERS:
            retrieve = space.retriever(name)
            for example in examples:
                hits = retrieve(example.question, max(BUDGETS))
                found.setdefault(name, []).append([hit.chunk.document_id for hit in hits])
    return found


def recalls(found: Found, examples: Sequence[Example]) -> dict[Column, list[float]]:
    """A recall for each question, by retriever and number of passages."""
    scores: dict[Column, list[float]] = {}
    for name, rankings in found.items():
        for k in BUDGETS:
            pairs = zip(examples, rankings, strict=True)
            scores[name, k] = [recall_at_k(example.supporting_ids, ids[:k], None) for example, ids in pairs]
    return scores


def fates(dense: set[str], dense_now: set[str], adaptive: set[str], adaptive_now: set[str]) -> dict[str, set[str]]:
    """Sort the evidence that the two retrievers found by the first encoder, and find now, by another."""
    anew = dense_now - dense
    return {
        "dense finds anew": anew,
        "adaptive had it": anew & adaptive,
        "adaptive finds it now": (anew & adaptive_now) - adaptive,
        "still missing": anew - adaptive - adaptive_now,
        "adaptive finds besides": adaptive_now - adaptive - anew,
        "adaptive loses": adaptive - adaptive_now,
        "at best": dense_now - adaptive,
    }


def shares_of_fates(first: Found, other: Found, examples: Sequence[Example], k: int) -> dict[str, float]:
    """The mean share of a question's evidence that each of `fates` has, among `k` passages."""
    shares: dict[str, list[float]] = {}
    for row, example in enumerate(examples):
        evidence = set(example.supporting_ids)
        of_question = []
        for name in ("dense", "adaptive"):
            of_question += [evidence.intersection(found[name][row][:k]) for found in (first, other)]
        for fate, ids in fates(*of_question).items():
            shares.setdefault(fate, []).append(len(ids) / len(evidence))
    return {fate: float(np.mean(of_questions)) for fate, of_questions in shares.items()}


def measure(name: str, path: Path, data: Path, encoders: Sequence[str], questions: int, *, with_kept: bool) -> None:
    """Print a row for each encoder; and, `with_kept`, for each after the first what became of the evidence."""
    examples = answerable(path, name, data, questions)
    with Index.open(path) as index:
        made_by, chunks = index.manifest.encoder_name, index.count(Chunk)

    first: Found = {}
    with tempfile.TemporaryDirectory() as folder:
        for spec in encoders:
            of_passages, _, precision = spec.partition("+")
            embedder = encoder_named(of_passages)
            asking = encoder_named(f"{of_passages.partition(':')[0]}:{precision}") if precision else embedder

            copy = Path(folder) / of_passages.replace(":", "-")
            if embedder.name != made_by and not copy.exists():
                shutil.copytree(path, copy, ignore=shutil.ignore_patterns("lock"))
                embed_again(copy, embedder)

            found = search(path if embedder.name == made_by else copy, asking, examples)
            first = first or found
            base, scores = recalls(first, examples), recalls(found, examples)
            if found is first:
                cells = [f"{np.mean(recall):.3f}" for recall in base.values()]
            else:
                cells = [difference_to(base[column], scores[column]) for column in scores]
            print(f"| {name}, {chunks:,} | {len(examples)} | {spec} | {' | '.join(cells)} |", flush=True)

            for k in BUDGETS if with_kept and found is not first else ():
                shares = shares_of_fates(first, found, examples, k)
                words = [f"{fate} {share:.3f}" for fate, share in shares.items()]
                print(f"{name}, {spec} @{k}: {', '.join(words)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="NAME=INDEX")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoders", nargs="+", default=ENCODERS)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--kept", action="store_true", help="what becomes of the evidence that dense finds anew")
    args = parser.parse_args()

    columns = [f"{retriever} @{k}" for retriever in RETRIEVERS for k in BUDGETS]
    print(f"| set, chunks | n | encoder | {' | '.join(columns)} |")
    print(f"|{'---|' * (len(columns) + 3)}")
    for each in args.sets:
        name, _, path = each.partition("=")
        measure(name, Path(path), args.data, args.encoders, args.questions, with_kept=args.kept)


if __name__ == "__main__":
    main()
