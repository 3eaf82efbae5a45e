"""Measures an index made by 1, 2 and 4 worker processes of a Ray cluster, where the server's latency is the bottleneck.

    python benchmarks/workers.py [--data ../shared/data] [--chunks 300] [--latency 1] [--workers 1 2 4] [--json]

Stand-in server, 16 calls in flight for each worker, as many as `kraq index --runner ray` gives one. Each run is made
beside one of this process alone with as many calls in flight. Then once more with the most workers, of which one is
killed (kill -9) in the middle of extraction: nothing may be missing.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from indexing import chunks_as_documents
from stand_in import StandIn, machine, stand_in

from kraq_dspy.build.index.build import build_index
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings, Settings
from kraq_dspy.steps.ray import CALLS

BUSY = r"ray::MapWorker\(MapBatches\(Actor\)\)\.submit"
"""How Ray calls the process of an actor that is at work."""


def index(data: Path, chunks: int, out: Path, server: StandIn, run: RunSettings) -> dict[str, Any]:
    """One build in this process; what the server saw of it."""
    server.reset()
    settings = Settings(
        encoder=EncoderSettings(name="stand-in", api_base=server.url),
        run=run,
        roles={"default": RoleSettings(model="hosted_vllm/stand-in", api_base=server.url)},
    )
    started = time.monotonic()
    report = build_index(chunks_as_documents(data, chunks), out, settings=settings)
    stats = server.stats()
    reading = [kind for name, kind in stats["kinds"].items() if "entities" in name]
    return {
        "wall_s": time.monotonic() - started,
        "extraction_s": max(kind["last"] for kind in reading) - min(kind["first"] for kind in reading),
        "calls": stats["requests"],
        "repeated": stats["repeated_requests"],
        "failed": len(report.failures),
        "questions": report.counts["questions"],
        "most_in_flight": stats["max_concurrency"],
    }


def on_ray(options: argparse.Namespace, workers: int, server: StandIn, *, loses_one: bool = False) -> dict[str, Any]:
    """One build with so many workers on this machine, in a process of its own."""
    command = [sys.executable, __file__, "--data", str(options.data), "--chunks", str(options.chunks)]
    command += ["--inside", server.root, "--workers", str(workers)]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    if loses_one:
        threading.Thread(target=kill_one, args=(server, options.chunks), daemon=True).start()
    printed, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"The run with {workers} workers ended with {process.returncode}.")
    [line] = [line for line in printed.splitlines() if line.startswith("{")]  # Ray tells of a lost worker, too
    figures: dict[str, Any] = json.loads(line)
    return figures


def inside(options: argparse.Namespace) -> None:
    import ray

    (workers,) = options.workers
    ray.init(address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False)
    run = RunSettings(concurrency=CALLS * workers, runner="ray")
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(index(options.data, options.chunks, Path(folder) / "x.kraq", StandIn(options.inside), run)))
    ray.shutdown()


def kill_one(server: StandIn, after: int) -> None:
    """Ends an actor as if its machine had failed, once the server has had so many requests."""
    while server.stats()["requests"] < after:
        time.sleep(0.2)
    while not (busy := subprocess.run(["pgrep", "-f", BUSY], capture_output=True, text=True, check=False).stdout):
        time.sleep(0.1)
    os.kill(int(busy.split()[0]), signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--chunks", type=int, default=300)
    parser.add_argument("--latency", type=float, default=1.0, help="seconds a call")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.inside:
        inside(options)
        return
    rows: dict[str, dict[str, Any]] = {}
    with stand_in(latency_ms=options.latency * 1000) as server:
        for workers in options.workers:
            with tempfile.TemporaryDirectory() as folder:
                run = RunSettings(concurrency=CALLS * workers)
                rows[f"this process, {run.concurrency} calls"] = index(
                    options.data, options.chunks, Path(folder) / "x.kraq", server, run
                )
            rows[f"{workers} workers"] = on_ray(options, workers, server)
        rows[f"{workers} workers, one killed"] = on_ray(options, workers, server, loses_one=True)
    if options.json:
        print(json.dumps({"machine": machine(), "runs": rows}, indent=2))
        return
    print(f"{machine()}, {options.chunks} chunks, {options.latency} s a call")
    for name, row in rows.items():
        print(
            f"{name:28} wall {row['wall_s']:6.1f} s, extraction {row['extraction_s']:6.1f} s; {row['calls']} calls, "
            f"{row['repeated']} twice; {row['most_in_flight']} in flight; {row['failed']} failed, "
            f"{row['questions']} questions"
        )


if __name__ == "__main__":
    main()
