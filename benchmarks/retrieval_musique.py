"""Measures recall and "all supporting passages found" of each retriever on MuSiQue, against dense retrieval.

    python benchmarks/retrieval_musique.py [--data ../shared/data/musique] [--index DIR] [--json | --markdown]

1,890 passages with given triples, 100 questions of two to four hops. The index is built by `import_triples` with the
embedded model and the packaged sentence encoder, offline and in about a minute, into `--index` where one is named (and
reused when it is there), else into a temporary folder. Every retriever gets the same budget k. Differences are paired,
with 95 % bootstrap intervals over questions: where they contain 0, chance may have made them.
"""

import argparse
import gzip
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.embedders import load_embedder
from kraq_dspy.eval.metrics.retrieval import all_supporting_at_k, recall_at_k
from kraq_dspy.eval.statistics import bootstrap_difference
from kraq_dspy.indexing.import_graph import import_triples
from kraq_dspy.ports import Embedder, Retriever, Vectors
from kraq_dspy.programs.retrievers import (
    AdaptiveRetriever,
    BM25Retriever,
    CombinedRetriever,
    CommunityBridgeRetriever,
    DenseRetriever,
    FusionRetriever,
    HybridRetriever,
    MMRRetriever,
    NearestQuestions,
    PageRankRetriever,
    QuestionCommunities,
)
from kraq_dspy.records import Community, Question
from kraq_dspy.stores.graph_files import open_passage_graph
from kraq_dspy.stores.index import Index

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "musique"
BUDGETS = (5, 10, 15)
ALPHAS = (0.25, 0.5, 0.75, 1.0)
AUXILIARY = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Asked:
    """A question of the data set, its embedding and the ids of its supporting documents."""

    text: str
    vector: Vectors
    gold: frozenset[str]


@dataclass(frozen=True)
class Row:
    """One retriever at one budget. Differences are to dense retrieval at the same budget: (mean, low, high)."""

    retriever: str
    k: int
    recall: float
    all_found: float
    recall_difference: tuple[float, float, float]
    all_found_difference: tuple[float, float, float]
    ms: float  # median per question, the encoder left out


def retrievers(index: Index, embedder: Embedder) -> dict[str, Retriever]:
    """Dense first: the others are compared with it."""
    chunks, vectors = index, index.chunk_vectors
    dense = DenseRetriever(chunks, vectors, embedder)
    nearest = NearestQuestions(index, index.question_vectors, embedder, filters={"source": "kraq"})
    communities = QuestionCommunities({c.id: c.chunk_ids for c in index.all(Community)}, index.all(Question))
    graph = open_passage_graph(index)

    def bridge(over: Retriever) -> Retriever:
        return CommunityBridgeRetriever(over, communities, index.question_vectors, vectors, chunks, embedder)

    hybrid = HybridRetriever(chunks, vectors, embedder, weight=0.5)
    worded = HybridRetriever(chunks, vectors, embedder, weight=0.4, okapi=0.08)
    combined = CombinedRetriever(dense, nearest, n=3)
    by_name: dict[str, Retriever] = {
        "dense": dense,
        "bm25": BM25Retriever(chunks, vectors),
        "hybrid .8": HybridRetriever(chunks, vectors, embedder),
        "hybrid .5": hybrid,
        "fusion dense+bm25": FusionRetriever([dense, BM25Retriever(chunks, vectors)]),
        "mmr .7": MMRRetriever(dense, vectors, embedder),
        "bridge": bridge(dense),
        "pagerank": PageRankRetriever(dense, graph, chunks),
        "pagerank over hybrid .5": PageRankRetriever(hybrid, graph, chunks),
        "hybrid .4 with okapi .08": worded,
        "adaptive": AdaptiveRetriever(worded, graph, chunks),
        "pagerank over combined n=3": PageRankRetriever(combined, graph, chunks),
        "combined n=3 over pagerank": CombinedRetriever(PageRankRetriever(dense, graph, chunks), nearest, n=3),
        "bridge over hybrid .5": bridge(hybrid),
    }
    for alpha in ALPHAS:
        for n in AUXILIARY if alpha < 1 else (1,):
            by_name[f"combined n={n} alpha={alpha}"] = CombinedRetriever(dense, nearest, n=n, alpha=alpha)
    return by_name


def measured(
    named: dict[str, Retriever], questions: list[Asked], tell: Callable[[str], None] = lambda name: None
) -> Iterable[Row]:
    baseline: dict[int, tuple[list[float], list[float]]] = {}
    for name, retrieve in named.items():
        tell(name)
        for k in BUDGETS:
            recall: list[float] = []
            all_found: list[float] = []
            seconds: list[float] = []
            for question in questions:
                started = time.perf_counter()
                hits = retrieve(question.text, k, vector=question.vector)
                seconds.append(time.perf_counter() - started)
                ranked = [hit.chunk.document_id for hit in hits]
                recall.append(recall_at_k(question.gold, ranked, k))
                all_found.append(all_supporting_at_k(question.gold, ranked, k))
            dense_recall, dense_all_found = baseline.setdefault(k, (recall, all_found))
            yield Row(
                name,
                k,
                statistics.mean(recall),
                statistics.mean(all_found),
                _difference(recall, dense_recall),
                _difference(all_found, dense_all_found),
                statistics.median(seconds) * 1000,
            )


def _difference(system: list[float], baseline: list[float]) -> tuple[float, float, float]:
    interval = bootstrap_difference(system, baseline)
    return interval.estimate, interval.low, interval.high


def rows_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def shown(rows: list[Row]) -> Table:
    table = Table(title="MuSiQue: recall / all found; [difference to dense in recall, 95 % interval]")
    table.add_column("retriever")
    for k in BUDGETS:
        table.add_column(f"k={k}", justify="right")
    table.add_column("ms", justify="right")
    for name in dict.fromkeys(row.retriever for row in rows):
        own = [row for row in rows if row.retriever == name]
        cells = []
        for row in own:
            estimate, low, high = row.recall_difference
            sure = "*" if low > 0 or high < 0 else ""
            cells.append(f"{row.recall:.3f} / {row.all_found:.2f} \\[{estimate:+.3f}: {low:+.3f} {high:+.3f}]{sure}")
        table.add_row(name, *cells, f"{statistics.median(row.ms for row in own):.1f}")
    return table


def markdown(rows: list[Row]) -> str:
    """The table of docs/results/retrieval.md."""
    budgets = " | ".join(f"k={k}" for k in BUDGETS)
    lines = [f"| retriever | {budgets} | recall@10 against dense | ms |", "|---" * (len(BUDGETS) + 3) + "|"]
    for name in dict.fromkeys(row.retriever for row in rows):
        own = {row.k: row for row in rows if row.retriever == name}
        cells = [f"{own[k].recall:.3f} / {own[k].all_found:.2f}" for k in BUDGETS]
        mean, low, high = own[10].recall_difference
        difference = "" if name == "dense" else f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
        cells += [difference, f"{statistics.median(row.ms for row in own.values()):.1f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with corpus, triples and questions")
    parser.add_argument("--index", type=Path, help="where to keep the index; reused when it is there")
    parser.add_argument("--json", action="store_true", help="rows as JSON on stdout")
    parser.add_argument("--markdown", action="store_true", help="the table of docs/results/retrieval.md on stdout")
    options = parser.parse_args()
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder:
        path = options.index or Path(folder) / "musique.kraq"
        if not path.exists():
            console.print("Building the index ...")
            import_triples(options.data, path)
        with Index.open(path) as index:
            embedder = load_embedder(index.manifest.settings.encoder)
            index.require_encoder(embedder)
            questions = rows_of(options.data / "questions.jsonl.gz")
            vectors = embedder.encode_queries([question["question"] for question in questions])
            queries = [
                Asked(question["question"], vector, frozenset(question["supporting_ids"]))
                for question, vector in zip(questions, vectors, strict=True)
            ]
            rows = list(measured(retrievers(index, embedder), queries, lambda name: console.print(f"{name} ...")))
            counts = index.counts()
    if options.json:
        report = {"encoder": embedder.name, "counts": counts, "questions": len(queries), "machine": machine()}
        print(json.dumps({**report, "rows": [asdict(row) for row in rows]}, indent=1))
    elif options.markdown:
        print(markdown(rows))
    else:
        Console(width=160).print(shown(rows))


if __name__ == "__main__":
    main()
