"""Measures on web pages as they come how much of the evidence stands in the first tokens that a retriever gives.

    python benchmarks/peers/web.py [--data ../shared/data] [--domains nature ...] [--out runs/web] [--keep]
        [--hubmesh] [--linearrag CHECKOUT]

The pages of three domains of WildGraphBench with their menus, notices and links (`--keep` leaves those in). Every
system searches the same passages with the same vectors; graphs are each system's own, ours by the embedded model.
Cells: within 1,000, 2,000 and 4,000 tokens, the share of the pages that answer a question ("pages"), and of the words
of its answers or statements without stop words ("words"); in brackets the paired difference from `adaptive`, 95 %
bootstrap. A table for each domain, then one for each type of question over all of them.
Indexes and rankings are kept under --out and not made again: a system that is missing there is added. hubmesh and
LinearRAG, which is under the GPL and run from a checkout of yours, have environments of their own. `--words` needs no
encoder: BM25 alone, over the pages cleaned and as they came.
"""

import argparse
import gzip
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script finds what is beside it, not what is above

import numpy as np
from beside_hubmesh import Remembered, search_with_peer
from peers.process import served
from peers.retrieval import first_tokens
from stand_in import machine

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.statistics import bootstrap_difference
from kraq_dspy.indexing.index.opening import documents_of
from kraq_dspy.papers.tables.data import load
from kraq_dspy.papers.tables.indexes import prepare_index, prepared
from kraq_dspy.ports import Embedder
from kraq_dspy.records import Chunk, Document
from kraq_dspy.settings import CorpusSettings, Settings
from kraq_dspy.workspace import Workspace

BUDGETS = (1000, 2000, 4000)
DEPTH = 60  # passages of which the budgets are filled
OURS = ("adaptive", "pagerank", "hybrid", "dense", "bm25")
STOP_WORDS = frozenset(
    "the a an of and to in is was were for on by with as at from that this it its be are or which had has have not but "  # noqa: SIM905
    "their they he his her what how did does who when where why during into also been after before".split()
)


def rank(name: str, options: argparse.Namespace, settings: Settings, embedder: Embedder) -> dict[str, Any]:
    """Of each system and question the ids of passages, best first; and the passages."""
    folder = options.out / f"{name}-{settings.corpus.boilerplate}"
    file = folder / "ranked.json"
    known: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {"ranked": {}}
    peers = [peer for peer in ("hubmesh", "linearrag") if getattr(options, peer)]
    missing = [system for system in (*OURS, *peers) if system not in known["ranked"]]
    if not missing:
        return known
    loaded = load(options.data, name)
    examples = [example for example in loaded.examples if example.supporting_ids]
    start = time.process_time()
    index = prepare_index(loaded.dataset, options.out / "indexes", settings, embedder)
    known.setdefault("seconds", time.process_time() - start)
    remembered = Remembered(embedder, [example.question for example in examples])
    with Workspace.open(index.path, embedder=remembered) as space:
        chunks = list(space.index.all(Chunk))
        known["passages"] = {chunk.id: [chunk.document_id, chunk.text] for chunk in chunks}
        known["counts"] = space.index.counts()
        folder.mkdir(parents=True, exist_ok=True)
        for system in missing:
            if system in OURS:
                retrieve: Any = space.retriever(system)
                rankings = [[hit.chunk.id for hit in retrieve(each.question, DEPTH)] for each in examples]
            else:
                rankings = rank_by_peer(system, space, remembered, chunks, examples, folder / system, options)
            known["ranked"][system] = {each.id: ids for each, ids in zip(examples, rankings, strict=True)}
            file.write_text(json.dumps(known), "utf-8")
    return known


def rank_by_peer(
    peer: str,
    space: Workspace,
    embedder: Embedder,
    chunks: Sequence[Chunk],
    examples: Sequence[Example],
    folder: Path,
    options: argparse.Namespace,
) -> list[list[str]]:
    """Of each question the ids of passages, best first; what its graph is made of is printed."""
    with served(Path(__file__).with_name("encoder_server.py")) as address:
        arguments = (str(options.linearrag.resolve()), address) if peer == "linearrag" else ()
        searched, made = search_with_peer(
            peer, space, embedder, chunks, examples, folder, options.out, DEPTH, arguments
        )
    print(f"{peer}: {made}, {searched.ms:.0f} ms of the processor a question", file=sys.stderr, flush=True)
    return searched.rankings


def rank_by_words(name: str, options: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """As `rank`, of BM25 alone, whose passages need no vectors."""
    loaded = load(options.data, name)
    documents = list(documents_of(loaded.dataset.documents, settings))
    chunks = [c for each in documents if isinstance(each, Document) for c in chunk_document(each, settings.chunks)]
    with tempfile.TemporaryDirectory() as folder:
        store = LocalVectorStore(Path(folder) / "words", 1)
        ones = np.ones((len(chunks), 1), np.float32)
        store.upsert([chunk.id for chunk in chunks], ones, [chunk.passage for chunk in chunks])
        ranked = {
            each.id: [id for id, _ in store.search_text(each.question, DEPTH)]
            for each in loaded.examples
            if each.supporting_ids
        }
        store.close()
    return {"ranked": {"bm25": ranked}, "passages": {chunk.id: [chunk.document_id, chunk.text] for chunk in chunks}}


def score(
    example: Example, telling_texts: Sequence[str], ids: Sequence[str], passages: Mapping[str, Any]
) -> dict[str, float]:
    """By measure and budget: shares of the pages and of the words that tell the answer."""
    words = set().union(*map(content_words, telling_texts))
    shares: dict[str, float] = {}
    for budget in BUDGETS:
        texts = list(first_tokens([passages[id][1] for id in ids], budget))
        pages = {passages[id][0] for id in ids[: len(texts)]}
        shares[f"pages {budget:,}"] = len(pages.intersection(example.supporting_ids)) / len(example.supporting_ids)
        words_found = set().union(*map(content_words, texts))
        shares[f"words {budget:,}"] = len(words & words_found) / len(words)
    return shares


def content_words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower())) - STOP_WORDS


def told_by(data: Path, name: str) -> dict[str, list[str]]:
    """By question, the statements that a good summary makes, else its answers."""
    with gzip.open(data / name / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        return {row["id"]: row.get("statements") or row["answers"] for row in rows}


def table(title: str, scores: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """A row for each system, with its difference from the first, in Markdown."""
    first = next(iter(scores))
    measures = list(scores[first][0])
    lines = [f"| {title} | {' | '.join(measures)} |", "|---" * (len(measures) + 1) + "|"]
    for system, rows in scores.items():
        cells = []
        for measure in measures:
            own, base = ([row[measure] for row in of] for of in (rows, scores[first]))
            cell = f"{statistics.mean(own):.3f}".removeprefix("0")
            if system != first and len(own) > 2:
                difference = bootstrap_difference(own, base)
                cell += f" ({difference.estimate:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}])"
            cells.append(cell)
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def compare_words(options: argparse.Namespace) -> None:
    for domain in options.domains:
        name = f"wildgraph_{domain}"
        telling_texts = told_by(options.data, name)
        examples = [example for example in load(options.data, name).examples if example.supporting_ids]
        scores = {}
        for boilerplate, title in (("drop", "cleaned"), ("keep", "as they came")):
            known = rank_by_words(name, options, Settings(corpus=CorpusSettings(boilerplate=boilerplate)))
            passages, ids = known["passages"], known["ranked"]["bm25"]
            scores[f"{title}, {len(passages):,} passages"] = [
                score(each, telling_texts[each.id], ids[each.id], passages) for each in examples
            ]
        print("\n" + table(f"bm25 on {domain} ({len(examples)} questions)", scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--domains", nargs="+", default=["nature", "history", "technology"])
    parser.add_argument("--out", type=Path, default=Path("runs/web"), help="kept: environment, indexes and rankings")
    parser.add_argument("--keep", action="store_true", help="leave menus, notices and links in the pages")
    parser.add_argument("--hubmesh", action="store_true", help="beside hubmesh, whose environment is made here")
    parser.add_argument("--linearrag", type=Path, help="beside LinearRAG, of which this is a checkout")
    parser.add_argument("--encoder", default="", help="another encoder than MiniLM")
    parser.add_argument("--words", action="store_true", help="BM25 alone, over the pages cleaned and as they came")
    options = parser.parse_args()
    options.out = options.out.resolve()
    if options.words:
        compare_words(options)
        return
    settings = Settings(corpus=CorpusSettings(boilerplate="keep" if options.keep else "drop"))
    if options.encoder:
        settings = replace(settings, encoder=replace(settings.encoder, name=options.encoder))
        options.out /= options.encoder.replace("/", "-")
    settings, embedder = prepared(settings)
    print(machine())
    by_type: dict[str, dict[str, list[dict[str, float]]]] = {}
    for domain in options.domains:
        name = f"wildgraph_{domain}"
        known, telling_texts = rank(name, options, settings, embedder), told_by(options.data, name)
        examples = [example for example in load(options.data, name).examples if example.supporting_ids]
        passages = known["passages"]
        tokens = sum(count_tokens(text) for _, text in passages.values())
        print(f"\n{name}: {known['counts']}, {tokens:,} tokens in passages, {known['seconds']:.0f} s of the processor")
        scores: dict[str, list[dict[str, float]]] = {}
        for system in in_order(known["ranked"]):
            ids = known["ranked"][system]
            scores[system] = [score(each, telling_texts[each.id], ids[each.id], passages) for each in examples]
            for each, row in zip(examples, scores[system], strict=True):
                by_type.setdefault(each.type, {}).setdefault(system, []).append(row)
                by_type.setdefault("all", {}).setdefault(system, []).append(row)
        print("\n" + table(f"{domain} ({len(examples)} questions)", scores))
    for kind, of_systems in sorted(by_type.items()):
        count = len(of_systems["adaptive"])
        print("\n" + table(f"{', '.join(options.domains)}: {kind} ({count} questions)", of_systems))


def in_order(systems: Collection[str]) -> list[str]:
    return [system for system in (*OURS, "hubmesh", "linearrag") if system in systems]


if __name__ == "__main__":
    main()
