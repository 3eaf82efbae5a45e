"""Times when the first call of `kraq index` reaches the model, from the start of its process, and what the run takes.

    python benchmarks/first_call.py [--data ../shared/data] [--against ../former] [--rounds 3] [--latency-ms 200]

60 articles put together from the pieces of multihop_rag (47,000 tokens); the stand-in server, 25 calls in flight, the
packaged encoder. Rounds alternate between the checkouts: ratios are of one run.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from indexing import chunks_as_documents
from stand_in import StandIn, machine, stand_in

HERE = Path(__file__).resolve().parents[1]
ARTICLES, PIECES, CONCURRENCY = 60, 9, 25


def write_corpus(data: Path, path: Path) -> None:
    pieces = [document.text for document in chunks_as_documents(data, ARTICLES * PIECES)]
    with path.open("w", encoding="utf-8") as file:
        for number in range(ARTICLES):
            text = "\n\n".join(pieces[number * PIECES : (number + 1) * PIECES])
            file.write(json.dumps({"id": f"article-{number:02}", "text": text}) + "\n")


def indexed(checkout: Path, corpus: Path, server: StandIn, folder: Path) -> dict[str, float]:
    settings = folder / "kraq.toml"
    settings.write_text(
        f"[run]\nconcurrency = {CONCURRENCY}\n[roles.default]\n"
        f'model = "hosted_vllm/stand-in"\napi_base = "{server.url}"\n'
    )
    out = folder / f"{time.monotonic_ns()}.kraq"
    command = [sys.executable, "-m", "kraq_dspy", "index", str(corpus), "--out", str(out), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    server.reset()
    subprocess.run(
        [*command, "--config", str(settings)], check=True, capture_output=True, cwd=checkout, env=environment
    )
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    stats = server.stats()
    return {
        "first call, s": min(kind["first"] for kind in stats["kinds"].values() if kind["first"] is not None),
        "wall, s": wall,
        "of the processor, s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "calls": stats["requests"],
        "prompt tokens": stats["prompt_tokens"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, default=200)
    options = parser.parse_args()
    checkouts = {"this checkout": HERE, **({"the other one": options.against.resolve()} if options.against else {})}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    with tempfile.TemporaryDirectory() as name, stand_in(latency_ms=options.latency_ms) as server:
        corpus = Path(name) / "articles.jsonl"
        write_corpus(options.data, corpus)
        for _ in range(options.rounds):
            for checkout, place in checkouts.items():
                runs[checkout].append(indexed(place, corpus, server, Path(name)))
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}, {options.rounds} rounds, medians")
    for checkout, figures in runs.items():
        medians = {key: statistics.median(run[key] for run in figures) for key in figures[0]}
        limit = medians["calls"] * options.latency_ms / 1000 / CONCURRENCY
        shown = ", ".join(f"{key} {value:,.1f}" for key, value in medians.items())
        print(f"{checkout}: {shown}; wall over the model's own time {medians['wall, s'] / limit:.2f}")


if __name__ == "__main__":
    main()
