"""Measures an index made with 1, 2 and 4 model servers behind one role, and with one of them lost on the way.

    python benchmarks/several_servers.py [--data ../shared/data] [--chunks 300] [--slots 16] [--latency 1] [--json]

Stand-in servers that answer so many calls at once, a second each. Of the most servers one is killed (kill -9) after a
third of the calls: nothing may be missing.
"""

import argparse
import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from indexing import chunks_as_documents
from stand_in import StandIn, machine, stand_in

from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings, Settings


def measure(servers: Sequence[StandIn], options: argparse.Namespace, *, loses_one: bool = False) -> dict[str, Any]:
    for server in servers:
        server.reset()
    settings = Settings(
        encoder=EncoderSettings(name="stand-in", api_base=servers[0].url),
        run=RunSettings(concurrency=options.slots * len(servers)),
        roles={
            "default": RoleSettings(model="hosted_vllm/stand-in", api_base=",".join(server.url for server in servers))
        },
    )
    documents = chunks_as_documents(options.data, options.chunks)
    if loses_one:
        threading.Thread(target=kill, args=(servers[-1], options.chunks // 3), daemon=True).start()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = build_index(documents, Path(folder) / "x.kraq", settings=settings)
    wall = time.monotonic() - started
    calls = [server.stats()["requests"] for server in servers[: len(servers) - loses_one]]
    return {
        "wall_s": wall,
        "calls": calls,
        "limit_s": sum(calls) * options.latency / settings.run.concurrency,
        "failed": len(report.failures),
        "questions": report.counts["questions"],
    }


def kill(server: StandIn, after: int) -> None:
    while server.stats()["requests"] < after:
        time.sleep(0.2)
    server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--chunks", type=int, default=300)
    parser.add_argument("--slots", type=int, default=16, help="calls that a server answers at once")
    parser.add_argument("--latency", type=float, default=1.0, help="seconds a call")
    parser.add_argument("--servers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    with contextlib.ExitStack() as stack:
        knobs = {"latency_ms": options.latency * 1000, "slots": options.slots}
        servers = [stack.enter_context(stand_in(**knobs)) for _ in range(max(options.servers))]
        for count in options.servers:
            rows[f"{count} servers"] = measure(servers[:count], options)
        rows[f"{count} servers, one killed"] = measure(servers[:count], options, loses_one=True)
    if options.json:
        print(json.dumps({"machine": machine(), "runs": rows}, indent=2))
        return
    print(f"{machine()}, {options.chunks} chunks, {options.latency} s a call, {options.slots} at once a server")
    for name, row in rows.items():
        print(
            f"{name:24} wall {row['wall_s']:6.1f} s (limit {row['limit_s']:.1f}); calls {row['calls']}; "
            f"{row['failed']} failed, {row['questions']} questions"
        )


if __name__ == "__main__":
    main()
