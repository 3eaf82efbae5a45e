"""Measures what another sentence encoder finds, and what it costs to index and to ask.

    OMP_NUM_THREADS=1 python benchmarks/encoders.py --data ../shared/data --set hotpotqa minilm multilingual-e5-small

Recall at 5 and 10 passages of `dense` and `adaptive` with each encoder, on one clean set (`default_program.sample`),
whose graph is the embedded model's; differences from the first encoder are paired, with 95 % bootstrap intervals.
Seconds are processor seconds: of the encoder alone for all passages, and of a question asked by itself, its encoding
included.
A name may be followed by a precision: "minilm:bf16"; or by two, of passages and of questions: "minilm:bf16+int8".
Those whose passages have one precision share an index. With `--raw`, "adaptive, raw" is `adaptive` over cosines as the
encoder gives them, without `ScaleOfCosines`.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from default_program import sample

from kraq_dspy.eval.datasets import load_dataset
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.eval.statistics import bootstrap_difference
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.papers.tables.indexes import prepare_index
from kraq_dspy.ports import Embedder
from kraq_dspy.settings import EncoderSettings, Settings
from kraq_dspy.workspace import Workspace

RETRIEVERS = ("dense", "adaptive")
RAW = "adaptive, raw"
BUDGETS = (5, 10)
Column = tuple[str, int]
"""A retriever and a number of passages."""


class AskedBy:
    """An index's encoder, of this name, in whose place another makes the vectors of questions."""

    def __init__(self, name: str, of_questions: Embedder) -> None:
        self.name = name
        self.dimension = of_questions.dimension
        self.encode_passages = of_questions.encode_passages
        self.encode_queries = of_questions.encode_queries


def measure(
    name: str, dataset_name: str, data: Path, out: Path, questions: int, passages: int, *, raw: bool = False
) -> tuple[dict[Column, list[float]], list[str]]:
    """A recall for each question, by column; and the seconds as cells."""
    dataset = sample(load_dataset(dataset_name, data), questions, passages)
    of_passages, _, of_questions = name.partition("+")
    encoder, _, precision = of_passages.partition(":")
    settings = Settings(encoder=resolve_encoder(EncoderSettings(encoder, precision=precision or "auto")))
    embedder = load_embedder(settings.encoder)

    texts = [f"{document.title}\n{document.text}" for document in dataset.documents]
    started = time.process_time()
    embedder.encode_passages(texts)
    cells = [f"{len(texts):,}", f"{time.process_time() - started:.0f} s"]
    index = prepare_index(dataset, out / of_passages.replace(":", "-") / "indexes", settings, embedder)

    asking = load_embedder(EncoderSettings(encoder, precision=of_questions)) if of_questions else embedder
    scores: dict[Column, list[float]] = {}
    with Workspace.open(index.path, embedder=AskedBy(embedder.name, asking)) as space:
        for retriever in (*RETRIEVERS, *([RAW] if raw else [])):
            retrieve: Any = space.retriever(retriever.partition(",")[0])
            if retriever == RAW:
                retrieve.retrieve._scaled = lambda cosines, question: cosines
            seconds = []
            for example in dataset.examples:
                started = time.process_time()
                hits = retrieve(example.question, max(BUDGETS))
                seconds.append(time.process_time() - started)
                document_ids = [hit.chunk.document_id for hit in hits]
                for k in BUDGETS:
                    recall = recall_at_k(example.supporting_ids, document_ids[:k], None)
                    scores.setdefault((retriever, k), []).append(recall)
            cells.append(f"{1000 * np.median(seconds):.0f} ms")
    return scores, cells


def difference_to(first: Sequence[float], scores: Sequence[float]) -> str:
    """The paired difference of the means, with its interval."""
    difference = bootstrap_difference(scores, first)
    return f"{difference.estimate:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def _cell(scores: list[float], first: list[float]) -> str:
    mean = f"{np.mean(scores):.3f}"
    return mean if scores is first else f"{mean} ({difference_to(first, scores)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoders", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/encoders"))
    parser.add_argument("--set", default="hotpotqa")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--passages", type=int, default=2000, help="A larger corpus is cut to half of this.")
    parser.add_argument("--raw", action="store_true", help="adaptive without ScaleOfCosines, too")
    args = parser.parse_args()
    first: dict[Column, list[float]] | None = None
    for name in args.encoders:
        scores, cells = measure(name, args.set, args.data, args.out, args.questions, args.passages, raw=args.raw)
        first = first or scores
        recalls = [_cell(scores[column], first[column]) for column in scores]
        if args.raw:
            for k in BUDGETS:
                gain = bootstrap_difference(scores["adaptive", k], scores[RAW, k])
                print(
                    f"{args.set}, {name}: standardized less raw @{k} {gain.estimate:+.3f} "
                    f"[{gain.low:+.3f}, {gain.high:+.3f}]",
                    flush=True,
                )
        print(f"| {args.set} | {name} | {' | '.join(recalls + cells)} |", flush=True)


if __name__ == "__main__":
    main()
