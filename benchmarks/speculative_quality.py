"""What the shortcut of Efficient Speculative RAG costs: other clusters, other evidence, other answers?

    python benchmarks/speculative_quality.py [--data ../shared/data] [--dataset musique ...] [--limit N] [--json]

For each question, E(d|q*) of the nearest KRAQ (or Random) question takes the place of E(d|Q). Compared with
Speculative RAG on the same passages: the adjusted Rand index of the clusters, the share of drafting subsets in common,
whether the chosen draft read the same passages, and exact match with a paired interval. Beside them the noise floor:
Speculative RAG against itself with another seed of KMeans. Last, the share of retrieved passages that
`kraq precompute --top-n` would have stored for q*; what is not stored is embedded online as seen from q*, so top-n
changes the time and not the answer.
"""

import argparse
import dataclasses
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.benchmark.data import load
from kraq_dspy.benchmark.indexes import prepare_index, prepared
from kraq_dspy.calibrate import agreement
from kraq_dspy.config import Settings
from kraq_dspy.embedders.instructed import load_instructed_embedder
from kraq_dspy.eval.answers import exact_match
from kraq_dspy.eval.statistics import bootstrap_difference, bootstrap_mean
from kraq_dspy.lms.adapter import KraqAdapter
from kraq_dspy.ports import InstructedEmbedder, Vectors
from kraq_dspy.programs.efficient_speculative_rag import EfficientSpeculativeRAG
from kraq_dspy.programs.speculative.subsets import cluster, draw_subsets
from kraq_dspy.programs.speculative_rag import SpeculativeRAG
from kraq_dspy.records import Chunk, Question
from kraq_dspy.speculate import make_speculative, preset_of
from kraq_dspy.workspace import Workspace

TOP_N = (100, 300, 1000)
SOURCES = ("kraq", "random")


class MadeNow:
    """The vectors that a full pre-computation would hold, made when they are asked for."""

    def __init__(self, space: Workspace, embedder: InstructedEmbedder) -> None:
        self.space = space
        self.embedder = embedder

    def lookup(self, question_id: str, chunk_ids: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        [question] = self.space.index.get(Question, [question_id])
        passages = [chunk.passage for chunk in self.space.index.get(Chunk, list(chunk_ids))]
        return self.embedder.encode(question.text, passages), np.ones(len(passages), dtype=bool)


@dataclasses.dataclass
class Outcome:
    """One question answered by one system; the agreements are with Speculative RAG."""

    exact: float
    clusters: float
    subsets: float
    same_evidence: float
    similarity: float = float("nan")
    found: tuple[float, ...] = ()


def compared(plain: dspy.Prediction, other: dspy.Prediction, gold: Sequence[str]) -> Outcome:
    ours, theirs = set(plain.subsets), set(other.subsets)
    return Outcome(
        exact=exact_match(gold, other.answer) if gold else float("nan"),
        clusters=agreement(plain.clusters, other.clusters),
        subsets=len(ours & theirs) / len(ours | theirs),
        same_evidence=float([hit.chunk.id for hit in plain.evidence] == [hit.chunk.id for hit in other.evidence]),
    )


def efficient(space: Workspace, plain: SpeculativeRAG, source: str) -> EfficientSpeculativeRAG:
    program = EfficientSpeculativeRAG(
        plain.retrieve,
        space.questions(source),
        MadeNow(space, plain.embedder),
        plain.embedder,
        n=plain.n,
        k=plain.k,
        m=plain.m,
        scorer=plain.scorer,
    )
    program.set_models(drafter=space.models["drafter"], verifier=space.models["verifier"])
    return program


def shares(space: Workspace, answer: dspy.Prediction) -> tuple[float, ...]:
    """How many of the passages are among the nearest `TOP_N` of the proxy."""
    nearest = [hit.chunk.id for hit in space.retriever("dense")(answer.proxy.question.text, max(TOP_N))]
    ids = [hit.chunk.id for hit in answer.hits]
    return tuple(sum(one in set(nearest[:top]) for one in ids) / len(ids) for top in TOP_N)


def measure(name: str, options: argparse.Namespace, settings: Settings, embedder: Any) -> dict[str, list[Outcome]]:
    asked = load(options.data, name, limit=options.limit)
    made = prepare_index(asked.dataset, options.indexes, settings, embedder, random_questions=True)
    rows: dict[str, list[Outcome]] = {"speculative": [], "other seed": [], **{source: [] for source in SOURCES}}
    with Workspace.open(made.path, embedder=embedder) as space, dspy.context(adapter=KraqAdapter()):
        sizes = preset_of("hotpotqa", None, None, None)
        seen_from = load_instructed_embedder(settings.instructed)
        sized: dict[str, Any] = {"embedder": seen_from, "n": sizes.n, "k": sizes.k, "m": sizes.m}
        plain = make_speculative(space.retriever("dense"), space.models, **sized)
        again = make_speculative(space.retriever("dense"), space.models, seed=1, **sized)
        proxied = {source: efficient(space, plain, source) for source in SOURCES}
        for example in asked.examples:
            first = plain(question=example.question)
            rows["speculative"].append(compared(first, first, example.answers))
            other = compared(first, again(question=example.question), example.answers)
            # The draw of subsets follows the seed too; the floor is that of the clusters alone.
            vectors = plain.see(example.question, first.hits, None).vectors
            reseeded = draw_subsets(cluster(vectors, plain.k, seed=1), plain.m, seed=0)
            other.subsets = len({*first.subsets} & {*reseeded}) / len({*first.subsets} | {*reseeded})
            rows["other seed"].append(other)
            for source, program in proxied.items():
                answer = program(question=example.question)
                outcome = compared(first, answer, example.answers)
                outcome.similarity, outcome.found = answer.proxy_similarity, shares(space, answer)
                rows[source].append(outcome)
    return rows


def interval(found: Any) -> str:
    return f"{found.estimate:.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def show(name: str, rows: dict[str, list[Outcome]], console: Console) -> None:
    table = Table(title=f"{name}, {len(rows['speculative'])} questions, {machine()}", title_justify="left")
    headings = ("embeddings", "proxy cosine", "ARI of clusters", "subsets shared", "same evidence", "EM", "EM - online")
    for heading in (*headings, *(f"found, top-n {top}" for top in TOP_N)):
        table.add_column(heading, justify="right")

    def mean(of: Callable[[Outcome], float], outcomes: list[Outcome]) -> str:
        values = [value for value in map(of, outcomes) if value == value]
        return f"{statistics.fmean(values):.3f}" if values else ""

    base = [one.exact for one in rows["speculative"]]
    for system, outcomes in rows.items():
        exact = [
            (one.exact, reference) for one, reference in zip(outcomes, base, strict=True) if one.exact == one.exact
        ]
        found = [statistics.fmean(column) for column in zip(*(one.found for one in outcomes), strict=True)]
        itself = system == "speculative"
        table.add_row(
            {"speculative": "online, from Q", "other seed": "online, other seed"}.get(system, f"from q*, {system}"),
            mean(lambda one: one.similarity, outcomes),
            "" if itself else interval(bootstrap_mean([one.clusters for one in outcomes])),
            "" if itself else mean(lambda one: one.subsets, outcomes),
            "" if itself else mean(lambda one: one.same_evidence, outcomes),
            mean(lambda one: one.exact, outcomes),
            "" if itself else interval(bootstrap_difference(*map(list, zip(*exact, strict=True)))),
            *(f"{share:.3f}" for share in found),
        )
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--dataset", action="append", choices=["musique", "hotpotqa"], help="default: both")
    parser.add_argument("--limit", type=int, help="questions of each")
    parser.add_argument("--indexes", type=Path, default=Path("runs/indexes"), help="kept and found again")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    settings, embedder = prepared(Settings())
    results = {name: measure(name, options, settings, embedder) for name in options.dataset or ["musique", "hotpotqa"]}
    if options.json:
        plain = {
            name: {s: [dataclasses.asdict(o) for o in found] for s, found in rows.items()}
            for name, rows in results.items()
        }
        print(json.dumps({"machine": machine(), "results": plain}, indent=2))
        return
    console = Console(width=170)
    for name, rows in results.items():
        show(name, rows, console)


if __name__ == "__main__":
    main()
