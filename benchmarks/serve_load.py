"""Loads a server with many clients for a minute, against the stand-in model.

    python benchmarks/serve_load.py [--clients 50] [--seconds 60] [--index load.kraq] [--json]

The bundled passages' first 200 are indexed with the stand-in, unless --index is there already. `kraq serve` then runs
in a process of its own, and each client asks one request after the other: half of them answers (a third of these
streamed), the rest searches, questions and communities. No request may fail; times are from the request to the end of
its answer.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from stand_in import StandIn, machine, stand_in

from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.records import Document
from kraq_dspy.settings import RoleSettings, Settings

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "hotpotqa-mini"
LATENCY_MS = 200.0
ANSWERS = ("ask", "stream")


def read_lines(name: str, count: int) -> list[dict[str, Any]]:
    with (EXAMPLE / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in itertools.islice(lines, count)]


@contextmanager
def served(index: Path, model: str, url: str) -> Iterator[tuple[str, int]]:
    """The server's address and process id."""
    command = [sys.executable, "-m", "kraq_dspy", "serve", str(index), "--port", "0"]
    command += ["--workers", "32", "--lm", model, "--api-base", url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("http"):
                yield line.split()[0], process.pid
                return
        raise SystemExit("kraq serve did not start; it says why above.")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


async def one_client(
    address: str, questions: list[str], until: float, seed: int, times: dict[str, list[float]], failures: Counter[str]
) -> None:
    rng = random.Random(seed)
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        broadest = (await client.get("/api/communities?level=0&limit=50")).json()["items"]
        while time.monotonic() < until:
            question = rng.choice(questions)
            kind = rng.choice(("ask", "ask", "stream", "search", "questions", "community"))
            started = time.perf_counter()
            try:
                if kind in ("ask", "stream"):
                    body = {"question": question, "program": rng.choice(("traditional", "combined"))}
                    answer = await client.post("/api/ask", json={**body, "stream": kind == "stream"})
                    complete = "event: answer" in answer.text if kind == "stream" else bool(answer.json().get("answer"))
                else:
                    path = {
                        "search": f"/api/search?q={question.split()[-1].strip('?')}",
                        "questions": f"/api/questions?offset={rng.randrange(50)}",
                        "community": f"/api/communities/{rng.choice(broadest)['id']}",
                    }[kind]
                    answer = await client.get(path)
                    complete = True
                if answer.status_code != 200 or not complete:
                    failures[f"{kind} {answer.status_code}"] += 1
            except httpx.HTTPError as error:
                failures[f"{kind} {type(error).__name__}"] += 1
            times[kind].append(time.perf_counter() - started)


async def load(
    address: str, questions: list[str], n_clients: int, seconds: float
) -> tuple[dict[str, Any], Counter[str]]:
    times: dict[str, list[float]] = defaultdict(list)
    failures: Counter[str] = Counter()
    until = time.monotonic() + seconds
    await asyncio.gather(*(one_client(address, questions, until, seed, times, failures) for seed in range(n_clients)))
    rows = {
        kind: {
            "requests": len(taken),
            "p50_ms": 1000 * statistics.median(taken),
            "p99_ms": 1000 * float(np.percentile(taken, 99)),
        }
        for kind, taken in sorted(times.items())
    }
    return rows, failures


def memory_mb(pid: int) -> float:
    """Peak of a process and those that it started, where /proc is there."""
    status = Path(f"/proc/{pid}/status")
    peak = next((line for line in status.read_text().splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(peak.split()[1]) / 1024 + sum(memory_mb(int(child)) for child in children)


def processor_seconds(pid: int) -> float:
    """What a process has taken of the processor, where /proc is there."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--index", type=Path, help="where the index stays for another run; a folder that goes unless given"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    documents = [Document(row["id"], row["title"], row["text"]) for row in read_lines("corpus.jsonl", 200)]
    questions = [row["question"] for row in read_lines("questions.jsonl", 60)]
    with stand_in(latency_ms=0) as server, tempfile.TemporaryDirectory() as folder:
        model = "hosted_vllm/stand-in"
        index: Path = options.index or Path(folder) / "load.kraq"
        if not index.exists():
            settings = Settings(roles={"default": RoleSettings(model=model, api_base=server.url)})
            build_index(documents, index, settings=settings)
        server.configure(latency_ms=LATENCY_MS)
        run = measured(index, model, server, questions, options)
    print(json.dumps(run, indent=2)) if options.json else show(run)
    if run["failures"]:
        sys.exit(f"Requests failed: {run['failures']}")


def measured(
    index: Path, model: str, server: StandIn, questions: list[str], options: argparse.Namespace
) -> dict[str, Any]:
    assert server.process is not None
    with served(index, model, server.url) as (address, pid):
        processes = {"server": pid, "stand-in": server.process.pid, "clients": os.getpid()}
        started = time.monotonic()
        before = {name: processor_seconds(each) for name, each in processes.items()}
        rows, failures = asyncio.run(load(address, questions, options.clients, options.seconds))
        seconds, peak = time.monotonic() - started, memory_mb(pid)
        taken = {name: processor_seconds(each) - before[name] for name, each in processes.items()}

    answers = sum(rows[kind]["requests"] for kind in ANSWERS if kind in rows)
    requests = sum(row["requests"] for row in rows.values())
    return {
        "machine": machine(), "load_average": os.getloadavg()[0], "clients": options.clients,
        "seconds": seconds, "model_latency_ms": LATENCY_MS, "requests": requests, "per_second": requests / seconds,
        "answers_per_second": answers / seconds,
        "processor_ms_an_answer": {name: 1000 * each / max(1, answers) for name, each in taken.items()},
        "failures": dict(failures), "peak_mb": peak, "kinds": rows,
    }  # fmt: skip


def show(run: dict[str, Any]) -> None:
    print(f"{run['machine']}, load average {run['load_average']:.1f}")
    print(f"{run['clients']} clients for {run['seconds']:.0f} s, {run['model_latency_ms']:.0f} ms a model call")
    failed = sum(run["failures"].values())
    print(
        f"{run['requests']} requests, {run['per_second']:.1f} a second, {failed} failed, peak {run['peak_mb']:.0f} MB"
    )
    by_process = ", ".join(f"{name} {each:.0f} ms" for name, each in run["processor_ms_an_answer"].items())
    print(f"{run['answers_per_second']:.1f} answers a second")
    print(f"processor time for each answer, the other requests included: {by_process}")
    for kind, row in run["kinds"].items():
        print(f"{kind:10} {row['requests']:6}  median {row['p50_ms']:7.0f} ms  p99 {row['p99_ms']:7.0f} ms")


if __name__ == "__main__":
    main()
