"""Measures whether KRAQ questions find more than the default retriever alone, for the choice of the default program.

    OMP_NUM_THREADS=1 python benchmarks/default_program.py --data ../shared/data --out runs/default musique popqa

Recall at 5, 10 and 15 passages of `adaptive` alone, and what combined retrieval over it (n=2) finds more or less:
with the paper's share (alpha .5). Where questions ask for lists, the share of the items that
the passages name, too. Indexes are the embedded model's; questions are drawn by a seed, and a corpus of more than
`--passages` is their evidence with others drawn. Differences are paired, with 95 % bootstrap intervals.
"""

import argparse
import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from kraq_dspy.eval.datasets import Dataset, Example, load_dataset
from kraq_dspy.eval.metrics.answers import substring_match
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.eval.statistics import bootstrap_difference
from kraq_dspy.papers.tables.indexes import prepare_index, prepared
from kraq_dspy.ports import Embedder, Retriever
from kraq_dspy.records import Hit
from kraq_dspy.retrievers import CombinedRetriever, RetrievalRequest, Retrieving
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace

BUDGETS = (5, 10, 15)
SYSTEMS = ("adaptive", "combined, alpha .5", "bm25")
Scores = dict[str, dict[str, list[float]]]
"""By measure ("recall@5", "items@5") and system, a score for each question."""


class Once(Retrieving):
    """Asks a retriever once for each question, and answers from that ranking whatever is left out."""

    def __init__(self, retrieve: Retriever, most: int) -> None:
        self.retrieve = retrieve
        self.most = most
        self.rankings: dict[str, list[Hit]] = {}

    def find(self, request: RetrievalRequest) -> list[Hit]:
        if request.question not in self.rankings:
            self.rankings[request.question] = self.retrieve(request.question, self.most, vector=request.vector)
        left = [hit for hit in self.rankings[request.question] if hit.chunk.id not in request.exclude]
        return left[: request.k]


def sample(dataset: Dataset, questions: int, passages: int) -> Dataset:
    """Questions with known evidence, those that ask for lists where there are any; and their part of a large corpus."""
    known = [example for example in dataset.examples if example.supporting_ids]
    some = [example for example in known if example.answer_items] or known
    random.Random(0).shuffle(some)
    chosen = tuple(dataclasses.replace(example, context_ids=()) for example in some[:questions])
    if len(dataset.documents) <= passages:
        return dataclasses.replace(dataset, examples=chosen)
    evidence = {document_id for example in chosen for document_id in example.supporting_ids}
    others = sorted(document.id for document in dataset.documents if document.id not in evidence)
    random.Random(0).shuffle(others)
    in_part = evidence | set(others[: max(0, passages // 2 - len(evidence))])
    documents = tuple(document for document in dataset.documents if document.id in in_part)
    return Dataset(f"{dataset.name}-part", documents, chosen)


def score(space: Workspace, examples: Sequence[Example]) -> Scores:
    adaptive = Once(space.retriever("adaptive"), 2 * max(BUDGETS))
    systems: dict[str, Callable[..., list[Hit]]] = {
        "adaptive": adaptive,
        "combined, alpha .5": CombinedRetriever(adaptive, space.questions()),
        "bm25": space.retriever("bm25"),
    }
    scores: Scores = {}
    for example in examples:
        vector = space.embedder.encode_queries([example.question])[0]
        for name in SYSTEMS:
            for k in BUDGETS:
                hits = systems[name](example.question, k, vector=vector)
                recall = recall_at_k(example.supporting_ids, [hit.chunk.document_id for hit in hits], None)
                scores.setdefault(f"recall@{k}", {}).setdefault(name, []).append(recall)
                if example.answer_items:
                    text = "\n".join(hit.chunk.passage for hit in hits)
                    share = float(np.mean([substring_match(synonyms, text) for synonyms in example.answer_items]))
                    scores.setdefault(f"items@{k}", {}).setdefault(name, []).append(share)
    return scores


def lines(dataset: Dataset, scores: Scores) -> list[str]:
    rows = []
    for measure in ("recall", "items"):
        if f"{measure}@5" in scores:
            cells = [_cell(scores[f"{measure}@{k}"], name) for name in SYSTEMS for k in BUDGETS]
            label = dataset.name if measure == "recall" else f"{dataset.name}, list items"
            size = f"{label} ({len(dataset.documents):,} passages, {len(dataset.examples)} questions)"
            rows.append(f"| {size} | {' | '.join(cells)} |")
    return rows


def _cell(scores: dict[str, list[float]], name: str) -> str:
    """A mean; of combined retrieval, its difference from `adaptive`."""
    if not name.startswith("combined"):
        return f"{np.mean(scores[name]):.3f}"
    difference = bootstrap_difference(scores[name], scores["adaptive"])
    return f"{difference.estimate:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def measure(
    name: str, data: Path, out: Path, questions: int, passages: int, settings: Settings, embedder: Embedder
) -> None:
    dataset = sample(load_dataset(name, data), questions, passages)
    index = prepare_index(dataset, out / "indexes", settings, embedder)
    with Workspace.open(index.path, embedder=embedder) as space:
        scores = score(space, dataset.examples)
    (out / f"{name}.json").write_text(json.dumps(scores), "utf-8")
    print("\n".join(lines(dataset, scores)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", metavar="NAME")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--passages", type=int, default=2000)
    options = parser.parse_args()
    settings, embedder = prepared(Settings())
    print(f"| | {' | '.join(f'{name} @{k}' for name in SYSTEMS for k in BUDGETS)} |")
    print("|---" * (1 + len(SYSTEMS) * len(BUDGETS)) + "|")
    for name in options.datasets:
        measure(name, options.data, options.out, options.questions, options.passages, settings, embedder)


if __name__ == "__main__":
    main()
