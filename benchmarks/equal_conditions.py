"""Do a corpus's questions find more than questions about random chunks, when the two conditions differ in nothing else?

    export OMP_NUM_THREADS=1
    python benchmarks/equal_conditions.py --out runs/conditions examples/hotpotqa-mini
    python benchmarks/equal_conditions.py --data ../shared/data --out runs/conditions popqa musique hotpotqa
    python benchmarks/equal_conditions.py --data ../shared/data --out runs/conditions multihop_rag bioasq

A name of `--data`, or the folder of a data set. Sixty questions and six hundred passages of each; the embedded model
asks both sources' questions, once, and no template asks in its place (`with_equal_questions`). A set that was measured
with today's encoder and the same sizes is read from `--out`; without names the tables are shown again.

First table: document recall of combined retrieval over `dense` (n=2, alpha=.5), with KRAQ's questions and with
Random's, searched by their text (Algorithm 1) or with eight central names behind it.

With it, at ten passages: how alike they are (the mean cosine of all pairs; less is more diverse) and from how many
communities of level 0 they come.

Second table: are the names of the nearest communities what helps? Those of the two nearest questions, appended to the
user's question, mixed into its vector by a quarter, or searched beside it and fused by rank with a quarter's weight.

Differences are paired, with 95 % bootstrap intervals; the last row of each table pools the sets.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from default_program import sample

from kraq_dspy.eval.datasets import Dataset, load_dataset, load_local
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.eval.statistics import bootstrap_difference
from kraq_dspy.papers.audits.diversity import communities_of_chunks, diversity_of
from kraq_dspy.papers.tables.indexes import prepare_index, prepared
from kraq_dspy.papers.tables.systems import with_equal_questions
from kraq_dspy.papers.tables.table import DEFINITIONS, read_table
from kraq_dspy.ports import Embedder, Retriever, Vectors
from kraq_dspy.records import Hit
from kraq_dspy.retrievers import CombinedRetriever
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace

BUDGETS = (10, 15)
MEASURES = ("recall", "pairwise_cosine", "communities")
NAMES = 8
WEIGHT = 0.25
FUSION = 60  # reciprocal rank fusion: 1 / (60 + rank)

Search = Callable[[str, int, Vectors], Sequence[Hit]]
Scores = dict[str, list[float]]


def conditions(space: Workspace) -> dict[str, Search]:
    """Dense retrieval, and Algorithm 1 over it with either source, by text and with names."""
    dense = space.retriever("dense")

    def combined(source: str, names: int) -> Search:
        retriever = CombinedRetriever(dense, space.questions(source), n=2, alpha=0.5, names=names)
        return lambda question, k, vector: retriever(question, k, vector=vector)

    return {
        "dense": lambda question, k, vector: dense(question, k, vector=vector),
        "KRAQ": combined("kraq", 0),
        "Random": combined("random", 0),
        "KRAQ, names": combined("kraq", NAMES),
        "Random, names": combined("random", NAMES),
    }


def names_of_neighbours(space: Workspace, question: str, vector: Vectors) -> str:
    """The central names of the two nearest questions, those left out that the question has."""
    nearest = space.questions()(question, 2, vector=vector)
    names = [name for hit in nearest for name in hit.question.names[:NAMES]]
    return ", ".join(dict.fromkeys(name for name in names if name not in question))


def pilot(space: Workspace, retriever: Retriever) -> dict[str, Search]:
    """The retriever alone, and with the names of neighbouring communities, in three ways."""

    def appended(question: str, k: int, vector: Vectors) -> Sequence[Hit]:
        return retriever(f"{question} {names_of_neighbours(space, question, vector)}", k)

    def mixed(question: str, k: int, vector: Vectors) -> Sequence[Hit]:
        of_names = space.embedder.encode_queries([names_of_neighbours(space, question, vector) or question])[0]
        together = (1 - WEIGHT) * vector + WEIGHT * of_names
        return retriever(question, k, vector=together / np.linalg.norm(together))

    def fused(question: str, k: int, vector: Vectors) -> Sequence[Hit]:
        rankings = retriever(question, 2 * k, vector=vector), appended(question, 2 * k, vector)
        hits: dict[str, Hit] = {}
        scores: dict[str, float] = {}
        for ranking, weight in zip(rankings, (1.0, WEIGHT), strict=True):
            for rank, hit in enumerate(ranking):
                hits[hit.chunk.id] = hit
                scores[hit.chunk.id] = scores.get(hit.chunk.id, 0.0) + weight / (FUSION + rank)
        best = sorted(scores, key=lambda chunk_id: -scores[chunk_id])[:k]
        return [hits[chunk_id] for chunk_id in best]

    return {
        "alone": lambda question, k, vector: retriever(question, k, vector=vector),
        "appended": appended,
        "mixed": mixed,
        "fused": fused,
    }


def measure(dataset: Dataset, out: Path, settings: Settings, embedder: Embedder) -> dict[str, Scores]:
    """By table, budget and measure, the values of each question by system."""
    table = read_table(DEFINITIONS / "combined.toml")
    equal, _ = with_equal_questions(settings, table.systems)
    index = prepare_index(dataset, out / "indexes", equal, embedder, random_questions=True)
    scores: dict[str, Scores] = {}
    with Workspace.open(index.path, embedder=embedder) as space:
        tables: dict[str, tuple[Mapping[str, Search], Sequence[int]]] = {
            "conditions": (conditions(space), BUDGETS),
            "dense": (pilot(space, space.retriever("dense")), BUDGETS[:1]),
            "adaptive": (pilot(space, space.retriever("adaptive")), BUDGETS[:1]),
        }
        communities = communities_of_chunks(space, 0)
        for example in dataset.examples:
            vector = embedder.encode_queries([example.question])[0]
            for name, (systems, budgets) in tables.items():
                for k in budgets:
                    for system, search in systems.items():
                        hits = search(example.question, k, vector)
                        values = diversity_of(space, hits, communities)
                        documents = list(dict.fromkeys(hit.chunk.document_id for hit in hits))
                        values["recall"] = recall_at_k(example.supporting_ids, documents, None)
                        for measure in MEASURES:
                            of_system = scores.setdefault(f"{name}@{k}, {measure}", {})
                            of_system.setdefault(system, []).append(values[measure])
    return scores


def row(label: str, scores: Scores, pairs: Sequence[tuple[str, str]], first: str) -> str:
    """The mean of `first`, then the difference of each pair of systems."""
    cells = [label, f"{np.mean(scores[first]):.3f}"]
    for system, other in pairs:
        difference = bootstrap_difference(scores[system], scores[other])
        cells.append(f"{difference.estimate:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]")
    return f"| {' | '.join(cells)} |"


CONDITION_PAIRS = (
    ("KRAQ", "dense"), ("Random", "dense"), ("KRAQ", "Random"),
    ("KRAQ, names", "dense"), ("Random, names", "dense"), ("KRAQ, names", "Random, names"),
)  # fmt: skip
PILOT_PAIRS = (("appended", "alone"), ("mixed", "alone"), ("fused", "alone"))


def show(measured: Mapping[str, dict[str, Scores]]) -> None:
    """All tables, a row for each data set, and one for all of them together."""
    tables: list[tuple[str, Sequence[tuple[str, str]], str]] = [
        (f"conditions@{k}, recall", CONDITION_PAIRS, "dense") for k in BUDGETS
    ]
    tables += [(f"conditions@{BUDGETS[0]}, {measure}", CONDITION_PAIRS, "dense") for measure in MEASURES[1:]]
    tables += [(f"{name}@{BUDGETS[0]}, recall", PILOT_PAIRS, "alone") for name in ("dense", "adaptive")]

    for key, pairs, first in tables:
        headings = " | ".join(f"{system} less {other}" for system, other in pairs)
        print(f"| {key} | {first} | {headings} |")
        print("|---" * (2 + len(pairs)) + "|")
        pooled: Scores = {}
        for name, scores in measured.items():
            print(row(f"{name}, {len(scores[key][first])} questions", scores[key], pairs, first))
            for system, values in scores[key].items():
                pooled.setdefault(system, []).extend(values)
        print(row(f"all, {len(pooled[first])} questions", pooled, pairs, first), flush=True)


def measure_or_read(name: str, options: argparse.Namespace) -> None:
    """Measure a data set and write its scores, unless the file of an equal run is there."""
    settings, embedder = prepared(Settings())
    made_with = {
        "encoder": embedder.name,
        "questions": options.questions,
        "passages": options.passages,
    }
    file = options.out / f"{Path(name).name}.json"
    if file.exists() and json.loads(file.read_text("utf-8")).get("made_with") == made_with:
        return

    dataset = load_local(Path(name)) if Path(name).is_dir() else load_dataset(name, options.data)
    part = sample(dataset, options.questions, options.passages)
    scores = measure(part, options.out, settings, embedder)
    content = {"made_with": made_with, "documents": len(part.documents), "scores": scores}
    file.write_text(json.dumps(content), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", metavar="NAME")
    parser.add_argument("--data", type=Path, default=Path("."))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--passages", type=int, default=1200, help="the evidence, and others up to a half of them")
    options = parser.parse_args()

    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.datasets:
        measure_or_read(name, options)

    measured: dict[str, dict[str, Scores]] = {}
    for file in sorted(options.out.glob("*.json")):
        content = json.loads(file.read_text("utf-8"))
        measured[f"{file.stem}, {content['documents']} documents"] = content["scores"]
    show(measured)


if __name__ == "__main__":
    main()
