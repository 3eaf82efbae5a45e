"""Indexes the same few essays with this library and with its peers, all of which ask one small real model.

    python benchmarks/peers/real_model.py --model models/qwen2.5-coder-0.5b.gguf [--essays 4] [--minutes 20]
        [--systems kraq lightrag-own-chunks ...] [--data ../shared/data] [--out runs/peers_real]

llama.cpp serves the model, two requests at a time, and counts; MiniLM makes the embeddings. The essays are `kg_mine`'s,
at equal distances; each has fifteen facts, and how far a graph states them is what `extraction_quality.py` measures. A
system that is not done after `--minutes` is stopped, and its row says what it had asked by then. What was measured is
kept under --out and not measured again: delete a file of figures/ for that.
"""

import argparse
import json
import statistics
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script finds what is beside it, not what is above

from extraction_quality import read, spread, triple_of
from graph_match import ExtractedGraph, fact_coverages
from peers.process import served
from peers.run import Bench
from peers.systems import BY_NAME, System
from peers.table import as_markdown
from stand_in import machine

from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.eval.statistics import bootstrap_mean
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.ports import Embedder
from kraq_dspy.programs.kraq.element_list import plain_words
from kraq_dspy.settings import EncoderSettings

BENCHMARKS = Path(__file__).resolve().parents[1]
SLOTS, MOST_TOKENS, CONTEXT = 2, 1024, 16_384
SYSTEMS = (
    "kraq", "kraq-thrifty", "fast-graphrag-own-chunks", "lightrag-own-chunks", "nano-graphrag-own-chunks",
    "graphrag-own-chunks",
)  # fmt: skip
Figures = dict[str, Any]


class RealBench:
    """`bench` says where everything is kept; `model` are a GGUF file and the threads that it may use."""

    def __init__(self, bench: Bench, model: tuple[Path, int]) -> None:
        self.bench, self.model = bench, model

    def index(self, system: System) -> Figures:
        """What it took and what the model was asked, and the graph; where it was stopped or failed, what is known."""
        file = self.bench.out / "figures" / f"{system.name}.json"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(self._asking_a_fresh_server(system), indent=1), "utf-8")
        figures: Figures = json.loads(file.read_text("utf-8"))
        return figures

    def _asking_a_fresh_server(self, system: System) -> Figures:
        """One that was stopped leaves requests behind, on which the server would go on to work."""
        file, threads = self.model
        arguments = ("--threads", str(threads), "--slots", str(SLOTS), "--context", str(CONTEXT))
        with served(BENCHMARKS / "model_server.py", str(file), *arguments, "--most", str(MOST_TOKENS)) as server:
            return self._measured(system, server)

    def _measured(self, system: System, server: str) -> Figures:
        folder = self.bench.out / "indexes" / system.name
        job = self.bench.job(system, folder, f"{server}/v1", f"{server}/v1")
        self.bench.run(system, "load", job, folder / "load.log")
        ask(f"{server}/reset", {})
        figures: Figures = {"machine": machine()}
        start = time.monotonic()
        try:
            taken = asdict(self.bench.run(system, "index", job, folder / "index.log"))
            figures |= taken | {"requests": ask(f"{server}/stats")}
            self.bench.run(system, "count", job, folder / "count.log")
            self.bench.run(system, "graph", job, folder / "graph.log")
        except RuntimeError as error:
            until_then = {"wall_s": time.monotonic() - start, "requests": ask(f"{server}/stats")}
            return {**until_then, **figures, "failure": str(error)}
        for name in ("counts", "graph"):
            figures[name] = json.loads((folder / f"{name}.json").read_text("utf-8"))
        return figures


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(url, data=data, timeout=60) as reply:
        return json.loads(reply.read())


def standing(names: Collection[str], text: str) -> list[str]:
    """Those of the names that the text has, in any case and by whole words, each once."""
    words = plain_words(text)
    return sorted(name.strip() for name in {plain_words(name) for name in names} if name.strip() and name in words)


def stated(graph: Mapping[str, Any], facts: Sequence[Sequence[str]], embedder: Embedder) -> list[float]:
    """Of each essay's facts the mean share that the graph of all essays states (`eval/metrics/facts.py`)."""
    extracted = ExtractedGraph(graph["names"], [triple_of(link) for link in graph["links"]])
    return [statistics.mean(fact_coverages(of_essay, extracted, embedder)) for of_essay in facts]


def row_of(
    title: str, figures: Figures, text: str, facts: Sequence[Sequence[str]], corpus_tokens: int, embedder: Embedder
) -> list[str]:
    requests = figures["requests"]
    cost = [
        f"{figures['wall_s']:,.0f}",
        f"{requests['calls']:,.0f}",
        f"{requests['prompt_tokens'] / corpus_tokens:.1f} x",
        f"{requests['written_tokens'] / corpus_tokens:.1f} x",
        f"{requests['cut']:.0f}, {requests['refused']:.0f}",
    ]
    if "failure" in figures:
        return [title, *cost, figures["failure"].splitlines()[0], *[""] * 5]
    counts, graph = figures["counts"], figures["graph"]
    covered = bootstrap_mean(stated(graph, facts, embedder))
    return [
        title,
        *cost,
        str(counts["failures"]),
        str(counts["entities"]),
        str(len(standing(graph["names"], text))),
        str(counts["relationships"]),
        " + ".join(map(str, counts["communities"])) or "none",
        f"{covered.estimate:.2f} [{covered.low:.2f}, {covered.high:.2f}]",
    ]


HEAD = (
    "", "wall s", "calls", "prompt tokens", "written", "cut off, refused", "failures", "names", "in the text",
    "links", "communities", "facts covered",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file whose name says how large the model is")
    parser.add_argument("--systems", nargs="+", choices=list(BY_NAME), default=SYSTEMS)
    parser.add_argument("--essays", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=20, help="for each system")
    parser.add_argument("--threads", type=int, default=1, help="of the model")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/peers_real"))
    options = parser.parse_args()
    essays = spread(read(options.data / "kg_mine" / "corpus.jsonl.gz"), options.essays)
    by_essay: dict[str, list[str]] = defaultdict(list)
    for fact in read(options.data / "kg_mine" / "facts.jsonl.gz"):
        by_essay[fact["passage_id"]].append(fact["fact"])
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"id": essay["id"], "text": essay["text"]}) + "\n" for essay in essays]
    (out / "essays.jsonl").write_text("".join(rows), "utf-8")
    text = "\n\n".join(essay["text"] for essay in essays)
    corpus_tokens, embedder = count_tokens(text), load_embedder(EncoderSettings())
    bench = Bench(out, out / "essays.jsonl", in_flight=SLOTS, model=options.model.stem, limit_s=60 * options.minutes)
    print(f"{machine()}; {len(essays)} essays, {corpus_tokens:,} tokens; {options.model.stem}", flush=True)
    real, table = RealBench(bench, (options.model, options.threads)), []
    facts = [by_essay[essay["id"]] for essay in essays]
    for name in options.systems:
        figures = real.index(BY_NAME[name])
        table.append(row_of(BY_NAME[name].title, figures, text, facts, corpus_tokens, embedder))
        print(" | ".join(table[-1]), file=sys.stderr, flush=True)
    print(as_markdown(HEAD, table))


if __name__ == "__main__":
    main()
