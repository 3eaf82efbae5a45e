"""Measures what indexing costs beside the model: wall time against the ideal, calls a second, prompt tokens.

    python benchmarks/indexing.py [--data ../shared/data] [--limit N] [--latency 0.2] [--config kraq.toml] [--json]

Three runs against a local OpenAI-compatible stand-in on the same machine, which also makes the embeddings:
200 ms a call on the chunks of multihop_rag (wall / (calls x 0.2 s / concurrency), to be at most 1.25); no latency
(calls a second, at least 100); and their text, chunked as usual (prompt tokens / corpus tokens, at most 10).
"""

import argparse
import dataclasses
import gzip
import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stand_in import StandIn, machine, stand_in

from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.records import Document
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings, Settings, read_settings

CONCURRENCY = 32
LATENCY_S = 0.2


def chunks_as_documents(data: Path, limit: int | None) -> list[Document]:
    """Each of the 3,006 pieces as a document of one chunk."""
    return [Document(row["id"], row["title"], row["text"]) for row in _rows(data, limit)]


def one_text(data: Path, limit: int | None) -> list[Document]:
    """The pieces put together again as one document: the set does not say which article a piece is of."""
    return [Document("multihop_rag", "", "\n\n".join(row["text"] for row in _rows(data, limit)))]


def _rows(data: Path, limit: int | None) -> list[dict[str, Any]]:
    with gzip.open(data / "multihop_rag" / "chunks.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines][:limit]


def measure(documents: Iterable[Document], server: StandIn, base: Settings) -> dict[str, Any]:
    server.reset()
    settings = dataclasses.replace(
        base,
        encoder=EncoderSettings(name="stand-in", api_base=server.url),
        run=RunSettings(concurrency=CONCURRENCY),
        roles={"default": RoleSettings(model="hosted_vllm/stand-in", api_base=server.url)},
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        report = build_index(documents, Path(folder) / "bench.kraq", settings=settings)
        wall = time.monotonic() - start
    stats = server.stats()
    if report.failures:
        raise RuntimeError(f"{len(report.failures)} items failed, first: {report.failures[0]}")
    return {
        "counts": report.counts,
        "wall_s": wall,
        "calls": stats["requests"],
        "repeated_calls": stats["repeated_requests"],
        "prompt_tokens": stats["prompt_tokens"],
        "prompt_tokens_by_stage": {stage: used.prompt_tokens for stage, used in report.usage.items()},
        "calls_by_stage": {stage: used.calls for stage, used in report.usage.items()},
        "most_in_flight": stats["max_concurrency"],
        "server_cpu_s": stats["server_cpu_s"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--limit", type=int, help="pieces to use; all without it")
    parser.add_argument("--runs", default="latency,speed,price", help="which of the three")
    parser.add_argument("--latency", type=float, default=LATENCY_S, help="seconds a call")
    parser.add_argument("--config", type=Path, help="settings, but for models, encoder and concurrency")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runs, settings = options.runs.split(","), read_settings(options.config)
    results: dict[str, Any] = {"machine": machine(), "model": "stand-in server"}
    with stand_in() as server:
        if "latency" in runs:
            server.configure(latency_ms=options.latency * 1000)
            figures = measure(chunks_as_documents(options.data, options.limit), server, settings)
            figures["ideal_s"] = figures["calls"] * options.latency / CONCURRENCY
            figures["wall_to_ideal"] = figures["wall_s"] / figures["ideal_s"]
            results["latency"] = figures
        if "speed" in runs:
            server.configure(latency_ms=0)
            figures = measure(chunks_as_documents(options.data, options.limit), server, settings)
            figures["calls_per_s"] = figures["calls"] / figures["wall_s"]
            results["speed"] = figures
        if "price" in runs:
            server.configure(latency_ms=0)
            documents = one_text(options.data, options.limit)
            figures = measure(documents, server, settings)
            figures["corpus_tokens"] = sum(count_tokens(document.text) for document in documents)
            figures["prompt_to_corpus"] = figures["prompt_tokens"] / figures["corpus_tokens"]
            results["price"] = figures
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print(results["machine"])
    for name, ratio, goal in (
        ("latency", "wall_to_ideal", "at most 1.25"),
        ("speed", "calls_per_s", "at least 100"),
        ("price", "prompt_to_corpus", "at most 10"),
    ):
        if name in results:
            figures = results[name]
            print(
                f"{name:8} {ratio} = {figures[ratio]:.2f} ({goal}); {figures['calls']} calls, {figures['wall_s']:.1f} s"
            )
            print(f"         calls {figures['calls_by_stage']}, prompt tokens {figures['prompt_tokens_by_stage']}")


if __name__ == "__main__":
    main()
