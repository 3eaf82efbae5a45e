"""Measures what a server that fails in every way costs an indexing run: wall time against a sound one, items lost.

    python benchmarks/faults.py [--data ../shared/data] [--chunks 1000] [--runs 3] [--first 0] [--latency 1]
                                [--patience 5] [--only-pairs] [--json]

Stand-in server, 1 s a call, 32 calls in flight, a client that waits 5 s for an answer. Each run indexes the same
chunks of multihop_rag without faults, then with these, by chance, for each attempt: 10 % HTTP 429, 5 % HTTP 500, 3 %
hang and are cut off, 5 % malformed or truncated, 2 % empty. Then the same command once more, with the same faults:
what failed is tried again. Wall time with faults is to be at most 1.6 times that without.
"""

import argparse
import json
import math
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from indexing import CONCURRENCY, chunks_as_documents
from scipy.stats import t as student
from stand_in import StandIn, machine, stand_in

from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.records import Document
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings, Settings

FAULTS = {"rate_429": 0.10, "rate_500": 0.05, "rate_timeout": 0.03, "rate_malformed": 0.05, "rate_empty": 0.02}


def index(documents: list[Document], out: Path, server: StandIn, patience_s: float) -> dict[str, Any]:
    """One build, and what the server saw of it."""
    server.reset()
    settings = Settings(
        encoder=EncoderSettings(name="stand-in", api_base=server.url),
        run=RunSettings(concurrency=CONCURRENCY),
        roles={"default": RoleSettings(model="hosted_vllm/stand-in", api_base=server.url, timeout_s=patience_s)},
    )
    start = time.monotonic()
    report = build_index(documents, out, settings=settings)
    wall = time.monotonic() - start
    stats = server.stats()
    return {
        "wall_s": wall,
        "requests": stats["requests"],
        "faults": stats["faults"],
        "counts": report.counts,
        "failed": [f"{failure.stage}: {failure.reason}"[:200] for failure in report.failures],
    }


def measure(
    documents: list[Document], server: StandIn, seed: int, patience_s: float, *, only_pair: bool = False
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        server.configure(**dict.fromkeys(FAULTS, 0), seed=seed)
        clean = index(documents, Path(folder) / "clean.kraq", server, patience_s)
        server.configure(**FAULTS)
        faulty = index(documents, Path(folder) / "faulty.kraq", server, patience_s)
        result = {"clean": clean, "faulty": faulty, "ratio": faulty["wall_s"] / clean["wall_s"]}
        if not only_pair:
            server.configure(seed=seed + 1000)  # or the same prompts would meet the same faults
            result["again"] = index(documents, Path(folder) / "faulty.kraq", server, patience_s)
    return result


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The geometric mean, and its 95 % interval by Student's t of the logarithms; two ratios or more."""
    logs = np.log(ratios)
    half = float(student.ppf(0.975, len(logs) - 1)) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return math.exp(logs.mean()), math.exp(logs.mean() - half), math.exp(logs.mean() + half)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--chunks", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3, help="each with other faults")
    parser.add_argument("--first", type=int, default=0, help="seed of the first run's faults")
    parser.add_argument("--only-pairs", action="store_true", help="without the third build, which tries again")
    parser.add_argument("--latency", type=float, default=1.0, help="seconds that a call takes")
    parser.add_argument("--patience", type=float, default=5.0, help="seconds after which the client gives a call up")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    documents = chunks_as_documents(options.data, options.chunks)
    with stand_in(latency_ms=options.latency * 1000, timeout_s=10 * options.patience, retry_after=1) as server:
        runs = [
            measure(documents, server, options.first + number, options.patience, only_pair=options.only_pairs)
            for number in range(options.runs)
        ]
    ratio = statistics.median(run["ratio"] for run in runs)
    if options.json:
        print(json.dumps({"machine": machine(), "median_ratio": ratio, "runs": runs}, indent=2))
        return
    print(machine())
    for run in runs:
        for name in ("clean", "faulty", "again"):
            if (figures := run.get(name)) is None:
                continue
            print(
                f"{name:7} {figures['wall_s']:6.1f} s, {figures['requests']} requests, faults {figures['faults']}, "
                f"{len(figures['failed'])} items failed"
            )
            for reason, count in Counter(" ".join(reason.split()) for reason in figures["failed"]).most_common(5):
                print(f"        {count} x {reason}")
        print(f"        {run['faulty']['counts']}")
    print(f"wall with faults / without = {ratio:.2f}, the median of {len(runs)} (at most 1.6)")
    if len(runs) > 1:
        print("geometric mean {:.2f}, 95 % interval {:.2f} to {:.2f}".format(*interval([run["ratio"] for run in runs])))


if __name__ == "__main__":
    main()
