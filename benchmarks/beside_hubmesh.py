"""Compares retrieval by `adaptive` with hubmesh: spaCy's names, PageRank and cosine, without a language model.

    python benchmarks/beside_hubmesh.py [--data ../shared/data] [--dataset NAME ...] [--limit 400] [--budgets 5 10 15]
        [--out runs/hubmesh]

Both search the same passages with the same vectors of MiniLM for passages and questions; the graph is each system's
own, ours by the embedded model. Cells: recall@k of the supporting documents, and hubmesh's paired difference from
`adaptive` with its 95 % interval. Milliseconds are of the processor and without the encoder. hubmesh runs in an
environment of its own, made once under --out; what is there is not made again.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from peers.environments import python_of
from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.eval.statistics import bootstrap_difference
from kraq_dspy.papers.tables.data import load
from kraq_dspy.papers.tables.indexes import prepare_index, prepared
from kraq_dspy.ports import Embedder, Vectors
from kraq_dspy.records import Chunk
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace

BUDGETS = (5, 10, 15)
DEPTH = max(BUDGETS)
OURS = ("adaptive", "hybrid", "dense")
DATASETS = ("hotpotqa", "popqa", "bioasq", "musique")
PEER, INSIDE = "hubmesh", Path(__file__).parent / "peers" / "inside"


class Remembered:
    """An encoder that has seen all questions before, so that no time goes into it."""

    def __init__(self, embedder: Embedder, questions: Sequence[str]) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension
        self.encode_passages = embedder.encode_passages
        self._rows = dict(zip(questions, embedder.encode_queries(questions), strict=True))

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._rows[text] for text in texts])


@dataclass(frozen=True)
class Searched:
    """Of each question the ids of the documents of the passages, best first; `ms` is the median search."""

    rankings: list[list[str]]
    ms: float

    def recalls(self, examples: Sequence[Example], k: int) -> list[float]:
        pairs = zip(examples, self.rankings, strict=True)
        return [recall_at_k(example.supporting_ids, ranking[:k], k) for example, ranking in pairs]


def compare(name: str, options: argparse.Namespace, settings: Settings, embedder: Embedder) -> dict[str, Any]:
    """The rows of one data set's table."""
    loaded = load(options.data, name, limit=options.limit)
    examples = [example for example in loaded.examples if example.supporting_ids]
    index = prepare_index(loaded.dataset, options.out / "indexes", settings, embedder)
    known = Remembered(embedder, [example.question for example in examples])
    with Workspace.open(index.path, embedder=known) as space:
        chunks = list(space.index.all(Chunk))
        documents = {chunk.id: chunk.document_id for chunk in chunks}
        searched = {ours: search_with_ours(space, ours, examples) for ours in OURS}
        theirs, graph = search_with_peer(PEER, space, known, chunks, examples, options.out / name, options.out)
    rankings = [[documents[id] for id in ids] for ids in theirs.rankings]
    searched[PEER] = Searched(rankings, theirs.ms)
    base = {k: searched["adaptive"].recalls(examples, k) for k in options.budgets}
    rows: dict[str, Any] = {}
    for system, result in searched.items():
        recalls = {k: result.recalls(examples, k) for k in options.budgets}
        rows[system] = {
            "ms": result.ms,
            "recall": {k: statistics.mean(recalls[k]) for k in options.budgets},
            "difference": {
                k: None if system == "adaptive" else vars_of(bootstrap_difference(recalls[k], base[k]))
                for k in options.budgets
            },
        }
    return {"passages": len(chunks), "questions": len(examples), "hubmesh graph": graph, "rows": rows}


def search_with_ours(space: Workspace, name: str, examples: Sequence[Example]) -> Searched:
    retrieve: Callable[[str, int], Any] = space.retriever(name)
    retrieve(examples[0].question, DEPTH)  # what is read at the first question is not counted
    rankings, seconds = [], []
    for example in examples:
        start = time.process_time()
        hits = retrieve(example.question, DEPTH)
        seconds.append(time.process_time() - start)
        rankings.append([hit.chunk.document_id for hit in hits])
    return Searched(rankings, statistics.median(seconds) * 1000)


def search_with_peer(
    peer: str,
    space: Workspace,
    embedder: Embedder,
    chunks: Sequence[Chunk],
    examples: Sequence[Example],
    folder: Path,
    out: Path,
    depth: int = DEPTH,
    arguments: Sequence[str] = (),
) -> tuple[Searched, dict[str, Any]]:
    """`rankings` are ids of passages here; beside them what the peer's graph was. `arguments` go to its script."""
    ranked = folder / "ranked.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"passages": [(chunk.id, chunk.passage) for chunk in chunks]}
    texts["questions"] = [(example.id, example.question) for example in examples]
    for kind, pairs in texts.items():
        lines = [json.dumps({"id": id, "text": text}) + "\n" for id, text in pairs]
        (folder / f"{kind}.jsonl").write_text("".join(lines), "utf-8")
    np.save(folder / "passages.npy", space.index.chunk_vectors.vectors([chunk.id for chunk in chunks]))
    np.save(folder / "questions.npy", embedder.encode_queries([example.question for example in examples]))
    (folder / "depth.txt").write_text(str(depth), "utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [str(python_of(peer, out)), str(INSIDE / f"with_{peer}.py"), str(folder), *arguments]
    subprocess.run(command, check=True, env=environment)
    rows = [json.loads(line) for line in ranked.read_text("utf-8").splitlines()]
    ms = statistics.median(row["seconds"] for row in rows) * 1000
    made: dict[str, Any] = json.loads((folder / "made.json").read_text("utf-8"))
    return Searched([row["ids"] for row in rows], ms), made


def vars_of(interval: Any) -> list[float]:
    return [interval.estimate, interval.low, interval.high]


def as_table(name: str, figures: dict[str, Any], budgets: Sequence[int]) -> Table:
    title = f"{name}: {figures['passages']:,} passages, {figures['questions']} questions"
    table = Table("retriever", *(f"recall@{k}" for k in budgets), "ms", title=title)
    for system, row in figures["rows"].items():
        cells = []
        for k in budgets:
            difference = row["difference"][k]
            behind = "" if difference is None else " ({:+.3f} [{:+.3f}, {:+.3f}])".format(*difference)
            cells.append(f"{row['recall'][k]:.3f}{behind}")
        table.add_row(system, *cells, f"{row['ms']:.1f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--dataset", nargs="+", default=list(DATASETS))
    parser.add_argument("--limit", type=int, default=400, help="questions of a set, drawn by seed 0")
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS, help=f"passages, up to {DEPTH}")
    parser.add_argument("--out", type=Path, default=Path("runs/hubmesh"), help="kept: the environment and the indexes")
    parser.add_argument("--json", action="store_true", help="a JSON object instead of tables")
    options = parser.parse_args()
    options.out = options.out.resolve()
    settings, embedder = prepared(Settings())
    figures = {}
    for name in options.dataset:
        figures[name] = compare(name, options, settings, embedder)
        if not options.json:
            Console(width=160).print(as_table(name, figures[name], options.budgets))
            print(f"hubmesh's graph: {figures[name]['hubmesh graph']}", file=sys.stderr)
    print(json.dumps({"machine": machine(), "sets": figures}) if options.json else machine())


if __name__ == "__main__":
    main()
