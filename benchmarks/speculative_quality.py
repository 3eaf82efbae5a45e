"""Shows what the shortcut of Efficient Speculative RAG costs: other clusters, other evidence, other answers.

    python benchmarks/speculative_quality.py [--data ../shared/data] [--dataset musique ...] [--limit N] [--json]
    python benchmarks/speculative_quality.py --found --dataset musique    # that share alone; no passage is read

For each question, E(d|q*) of the nearest KRAQ (or Random) question takes the place of E(d|Q). Compared with
Speculative RAG on the same passages: the adjusted Rand index of the clusters, the share of drafting subsets in common,
whether the chosen draft read the same passages, how much of the supporting evidence its best subset holds, and exact
match, with paired intervals. Beside them: the noise floor, Speculative RAG against itself with another seed of KMeans;
and the passages' own vectors, which no question has seen.

`found` is the share of retrieved passages that `kraq precompute --top-n` would have stored for q*. What is not stored
is embedded online as seen from q*, so top-n changes the time alone, but where nothing is found E(d|Q) is used.
"""

import argparse
import dataclasses
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from numpy.typing import NDArray
from proxies import agreement
from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.metrics.answers import substring_match
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.eval.statistics import bootstrap_difference, bootstrap_mean
from kraq_dspy.models.embedders.instructed import load_instructed_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.papers.tables.data import load
from kraq_dspy.papers.tables.indexes import prepare_index, prepared
from kraq_dspy.ports import Embedder, InstructedEmbedder, Retriever, Vectors
from kraq_dspy.programs.speculative.efficient_speculative_rag import EfficientSpeculativeRAG
from kraq_dspy.programs.speculative.speculative_rag import SpeculativeOptions, SpeculativeRAG
from kraq_dspy.programs.speculative.subsets import cluster, draw_subsets
from kraq_dspy.records import Chunk, Hit, Question
from kraq_dspy.settings import InstructedSettings, Settings
from kraq_dspy.workspace import Workspace

TOP_N = (20, 100, 300, 1000)  # 20 is the default of kraq precompute
SOURCES = ("kraq", "random")
ONLINE, RESEEDED, UNASKED = "online, from Q", "online, other seed", "of no question"


class MadeNow:
    """The vectors that a full pre-computation would hold, made when they are asked for."""

    def __init__(self, space: Workspace, embedder: InstructedEmbedder) -> None:
        self.space = space
        self.embedder = embedder

    def lookup(self, question_id: str, chunk_ids: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        [question] = self.space.index.get(Question, [question_id])
        passages = [chunk.passage for chunk in self.space.index.get(Chunk, list(chunk_ids))]
        return self.embedder.encode(question.text, passages), np.ones(len(passages), dtype=bool)


class Remembering:
    """An encoder that keeps its last answers: the runs with two seeds see the same."""

    def __init__(self, embedder: InstructedEmbedder) -> None:
        self.embedder = embedder
        self.name, self.dimension = embedder.name, embedder.dimension
        self.last: dict[tuple[str, tuple[str, ...]], Vectors] = {}

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        key = (question, tuple(passages))
        if key not in self.last:
            self.last = {**dict(list(self.last.items())[-3:]), key: self.embedder.encode(question, passages)}
        return self.last[key].copy()


class SentencesOnce:
    """The sentence encoder; the drafts of a question read the same sentences again and again."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.name, self.dimension = embedder.name, embedder.dimension
        self.encode_queries = embedder.encode_queries
        self.known: dict[str, Vectors] = {}

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        known = self.known if len(self.known) < 10_000 else {}  # replaced as a whole: drafts are threads
        if fresh := [text for text in dict.fromkeys(texts) if text not in known]:
            known = {**known, **dict(zip(fresh, self.embedder.encode_passages(fresh), strict=True))}
            self.known = known
        return np.array([known[text] for text in texts], dtype=np.float32).reshape(len(texts), self.dimension)


class Unasked:
    """The passages' own vectors, those of the index, whatever the question."""

    name = "of no question"

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.dimension = embedder.dimension

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        return self.embedder.encode_passages(passages)


@dataclasses.dataclass
class Outcome:
    """One question answered by one system; the agreements are with Speculative RAG.

    `support` is the share of the supporting documents in the subset that holds most of them. `stored` is, for each of
    TOP_N, the share of the passages that is stored for the proxy.
    """

    question: str
    answer: str
    exact: float
    support: float
    clusters: float
    subsets: float
    same_evidence: float
    similarity: float = float("nan")
    stored: tuple[float, ...] = ()


def compared(plain: dspy.Prediction, other: dspy.Prediction, example: Example) -> Outcome:
    documents = [[other.hits[place].chunk.document_id for place in subset] for subset in other.subsets]
    gold = frozenset(example.supporting_ids)
    return Outcome(
        question=example.question,
        answer=other.answer,
        exact=substring_match(example.answers, other.answer) if example.answers else float("nan"),
        support=max(recall_at_k(gold, read, None) for read in documents) if gold else float("nan"),
        clusters=agreement(plain.clusters, other.clusters),
        subsets=jaccard(plain.subsets, other.subsets),
        same_evidence=float([hit.chunk.id for hit in plain.evidence] == [hit.chunk.id for hit in other.evidence]),
    )


def jaccard(some: Sequence[tuple[int, ...]], others: Sequence[tuple[int, ...]]) -> float:
    return len({*some} & {*others}) / len({*some} | {*others})


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
    program.draft.set_lm(space.models["drafter"])
    program.scorer.set_lm(space.models["verifier"])
    return program


def shares(space: Workspace, proxy: str, hits: Sequence[Hit]) -> tuple[float, ...]:
    """How many of the passages are among the nearest `TOP_N` of the proxy."""
    nearest = [hit.chunk.id for hit in space.retriever("dense")(proxy, max(TOP_N))]
    ids = [hit.chunk.id for hit in hits]
    return tuple(sum(id in set(nearest[:top]) for id in ids) / len(ids) for top in TOP_N)


def speculative(retrieve: Retriever, embedder: InstructedEmbedder, options: SpeculativeOptions) -> SpeculativeRAG:
    return SpeculativeRAG(retrieve, embedder, **dataclasses.asdict(options.sizes), seed=options.seed)


def measure(name: str, options: argparse.Namespace, settings: Settings, embedder: Embedder) -> dict[str, list[Outcome]]:
    """The outcomes of each system."""
    questions = load(options.data, name, limit=options.limit)
    index = prepare_index(questions.dataset, options.indexes, settings, embedder, random_questions=True)
    rows: dict[str, list[Outcome]] = {key: [] for key in (ONLINE, RESEEDED, UNASKED, *SOURCES)}
    with Workspace.open(index.path, embedder=SentencesOnce(embedder)) as space, dspy.context(adapter=KraqAdapter()):
        chosen = SpeculativeOptions(preset="hotpotqa")
        seen_from = Remembering(load_instructed_embedder(settings.instructed))
        dense = space.retriever("dense")
        plain = speculative(dense, seen_from, chosen)
        again = speculative(dense, seen_from, dataclasses.replace(chosen, seed=1))
        unasked = speculative(dense, Unasked(embedder), chosen)
        for program in (plain, again, unasked):
            program.draft.set_lm(space.models["drafter"])
            program.scorer.set_lm(space.models["verifier"])
        proxied = {source: efficient(space, plain, source) for source in SOURCES}
        for number, example in enumerate(questions.examples, start=1):
            print(f"{name}: question {number} of {len(questions.examples)}", file=sys.stderr)
            first = plain(question=example.question)
            rows[ONLINE].append(compared(first, first, example))
            other = compared(first, again(question=example.question), example)
            # The draw of subsets follows the seed too; the floor is that of the clusters alone.
            vectors = plain.see(example.question, first.hits, None).vectors
            reseeded = draw_subsets(cluster(vectors, plain.k, seed=1), plain.m, seed=0)
            other.subsets = jaccard(first.subsets, reseeded)
            rows[RESEEDED].append(other)
            rows[UNASKED].append(compared(first, unasked(question=example.question), example))
            for source, program in proxied.items():
                answer = program(question=example.question)
                outcome = compared(first, answer, example)
                outcome.similarity, outcome.stored = (
                    answer.proxy_similarity,
                    shares(space, answer.proxy.question.text, answer.hits),
                )
                rows[source].append(outcome)
    return rows


def show_found(
    name: str,
    options: argparse.Namespace,
    settings: Settings,
    embedder: Embedder,
    console: Console,
) -> None:
    """How many of a question's ten passages are stored for its nearest question, by source and top-n."""
    questions = load(options.data, name, limit=options.limit)
    path = options.index
    if path is None:
        made = prepare_index(questions.dataset, options.indexes, settings, embedder, random_questions=True)
        path = made.path
    table = Table(title=f"{name}, {len(questions.examples)} questions; {machine()}")
    for heading in ("q* of", *(f"top-n {top}" for top in TOP_N)):
        table.add_column(heading)

    with Workspace.open(path, embedder=embedder) as space:
        retrieve = space.retriever("dense")
        for source in SOURCES:
            nearest = space.questions(source)
            found = []
            for example in questions.examples:
                [proxy] = nearest(example.question, 1)
                hits = retrieve(example.question, SpeculativeOptions(preset="hotpotqa").sizes.n)
                found.append(shares(space, proxy.question.text, hits))
            by_top = [bootstrap_mean(list(column)) for column in zip(*found, strict=True)]
            table.add_row(source, *map(interval, by_top))
    console.print(table)


def stored(outcomes: list[Outcome], online: list[Outcome], top: int) -> list[Outcome]:
    """With the nearest TOP_N[top] passages stored: Speculative RAG where none of those retrieved is among them."""
    return [
        outcome
        if outcome.stored[top]
        else dataclasses.replace(plain, similarity=outcome.similarity, stored=outcome.stored)
        for outcome, plain in zip(outcomes, online, strict=True)
    ]


def interval(mean: Any) -> str:
    return f"{mean.estimate:.3f}\n[{mean.low:+.3f}, {mean.high:+.3f}]"


def show(name: str, rows: dict[str, list[Outcome]], console: Console) -> None:
    online = rows[ONLINE]
    table = Table(title=f"{name}, {len(online)} questions, {machine()}", title_justify="left", show_lines=True)
    for heading in (
        "embeddings", "proxy cosine", "found", "ARI of clusters", "subsets shared", "same evidence", "support",
        "support - online", "EM", "EM - online",
    ):  # fmt: skip
        table.add_column(heading, justify="right")

    def mean(of: Callable[[Outcome], float], outcomes: list[Outcome]) -> str:
        values = [value for value in map(of, outcomes) if not math.isnan(value)]
        return f"{statistics.fmean(values):.3f}" if values else ""

    def less(of: Callable[[Outcome], float], outcomes: list[Outcome]) -> str:
        pairs = [(of(outcome), of(plain)) for outcome, plain in zip(outcomes, online, strict=True)]
        pairs = [pair for pair in pairs if not any(map(math.isnan, pair))]
        return interval(bootstrap_difference(*map(list, zip(*pairs, strict=True)))) if pairs else ""

    def add(system: str, outcomes: list[Outcome], share: str = "") -> None:
        itself = outcomes is online
        table.add_row(
            system,
            mean(lambda outcome: outcome.similarity, outcomes),
            share,
            "" if itself else interval(bootstrap_mean([outcome.clusters for outcome in outcomes])),
            "" if itself else interval(bootstrap_mean([outcome.subsets for outcome in outcomes])),
            "" if itself else mean(lambda outcome: outcome.same_evidence, outcomes),
            mean(lambda outcome: outcome.support, outcomes),
            "" if itself else less(lambda outcome: outcome.support, outcomes),
            mean(lambda outcome: outcome.exact, outcomes),
            "" if itself else less(lambda outcome: outcome.exact, outcomes),
        )

    for system in (ONLINE, RESEEDED, UNASKED):
        add(system, rows[system])
    for source in SOURCES:
        add(f"of q*, {source}, all", rows[source], "1.000")
        for place in reversed(range(len(TOP_N))):
            share = statistics.fmean(outcome.stored[place] for outcome in rows[source])
            add(f"of q*, {source}, top-n {TOP_N[place]}", stored(rows[source], online, place), f"{share:.3f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--dataset", action="append", help="default: musique and hotpotqa")
    parser.add_argument("--limit", type=int, help="questions of each")
    parser.add_argument("--indexes", type=Path, default=Path("runs/indexes"), help="kept and found again")
    parser.add_argument("--index", type=Path, help="with --found: an index of the set that has both sources' questions")
    parser.add_argument("--found", action="store_true", help="only the share that is stored for q*")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    settings, embedder = prepared(Settings(instructed=InstructedSettings(kind="pair")))
    if options.found:
        for name in options.dataset or ["musique", "hotpotqa"]:
            show_found(name, options, settings, embedder, Console(width=170))
        return

    results = {name: measure(name, options, settings, embedder) for name in options.dataset or ["musique", "hotpotqa"]}
    if options.json:
        plain = {
            name: {system: [dataclasses.asdict(outcome) for outcome in outcomes] for system, outcomes in rows.items()}
            for name, rows in results.items()
        }
        print(json.dumps({"machine": machine(), "results": plain}, indent=2))
        return
    console = Console(width=170)
    for name, rows in results.items():
        show(name, rows, console)


if __name__ == "__main__":
    main()
