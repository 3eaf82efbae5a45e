"""Measures MiniLM's three precisions: seconds, memory, and how near their vectors are to those in float32.

    OMP_NUM_THREADS=1 python benchmarks/encoder_engines.py --data ../shared/data --set popqa fp32 bf16 int8

Each precision has a process of its own with one thread. Seconds are processor seconds, which other
programs on the machine change less than those of the clock. "overlap" is the share of a question's
ten nearest passages that are among its ten nearest by the first precision named.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from kraq_dspy.eval.datasets import load_dataset
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.settings import EncoderSettings

QUESTIONS = 100


def encode(precision: str, name: str, data: Path, n_passages: int, out: Path) -> None:
    """Writes vectors of passages and questions, processor seconds, and the most memory in megabytes."""
    import resource

    dataset = load_dataset(name, data)
    step = max(1, len(dataset.documents) // n_passages)
    documents = dataset.documents[::step][:n_passages]
    passages = [f"{document.title}\n{document.text}" for document in documents]
    questions = [example.question for example in dataset.examples[:QUESTIONS]]

    started = time.process_time()
    encoder = load_embedder(EncoderSettings(precision=precision, threads=1))
    encoder.encode_queries(["warm"])
    loaded = time.process_time()
    of_questions = np.concatenate([encoder.encode_queries([question]) for question in questions])
    questions_encoded = time.process_time()
    of_passages = encoder.encode_passages(passages)
    passages_encoded = time.process_time()

    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = [loaded - started, (questions_encoded - loaded) / len(questions), passages_encoded - questions_encoded]
    np.savez(out, passages=of_passages, questions=of_questions, seconds=seconds, megabytes=megabytes)


def nearest(vectors: dict[str, np.ndarray]) -> np.ndarray:
    """Of each question the places of its ten nearest passages."""
    cosines = vectors["questions"] @ vectors["passages"].T
    return np.argsort(-cosines, axis=1)[:, :10]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("precisions", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="popqa")
    parser.add_argument("--passages", type=int, default=1000)
    parser.add_argument("--to", type=Path, help="write the vectors of one precision here, and nothing else")
    args = parser.parse_args()
    if args.to is not None:
        encode(args.precisions[0], args.set, args.data, args.passages, args.to)
        return

    first: dict[str, np.ndarray] = {}
    print("| precision | passages | load | a question | memory | cosine | lowest cosine | overlap |")
    print("|---|---|---|---|---|---|---|---|")
    for precision in args.precisions:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "vectors.npz"
            own = [sys.executable, __file__, precision, "--data", str(args.data), "--set", args.set]
            subprocess.run([*own, "--passages", str(args.passages), "--to", str(out)], check=True)
            vectors = dict(np.load(out))
        first = first or vectors
        cosines = (vectors["passages"] * first["passages"]).sum(axis=1)
        shared = [len(set(a) & set(b)) / 10 for a, b in zip(nearest(vectors), nearest(first), strict=True)]
        load, question, passages = vectors["seconds"]
        print(
            f"| {precision} | {passages:.1f} s | {load:.2f} s | {1000 * question:.1f} ms "
            f"| {vectors['megabytes']:.0f} MB | {cosines.mean():.5f} | {cosines.min():.5f} | {np.mean(shared):.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
