"""Compares a GGUF file in this process, by llama.cpp and by transformers, with the same file behind llama.cpp's server.

    kraq lm get smollm2-135m
    python benchmarks/local_engine.py --model models/smollm2-135m.gguf [--passages 40] [--threads 2] [--json]

All get the same passages of examples/hotpotqa-mini, to name and link what is in them as `kraq index` asks small models
to, `--concurrency` at a time, held to the schema. They take turns, `--rounds` of each, the passages of a round never
seen before, and what counts is the ratio. "kept" is the share of the prompt's tokens that the server had from a call
before, by its own count; the server has an address and a process of its own, as many slots and threads. transformers
computes with the file's weights in 32 bits, which take four bytes a parameter of memory.
"""

import argparse
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import dspy
import httpx
import torch
from dspy.utils.exceptions import AdapterParseError
from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.config import RoleSettings
from kraq_dspy.lms.roles import make_lm
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.signatures import NameElements

CORPUS = Path(__file__).resolve().parents[1] / "examples" / "hotpotqa-mini" / "corpus.jsonl"
SLOTS, CONTEXT = 4, 4096
STARTED_S = 60


@dataclass
class Round:
    """One pass over passages: wall seconds, tokens, and calls that gave no readable reply."""

    engine: str
    seconds: float
    prompt_tokens: int
    kept_tokens: int
    completion_tokens: int
    failed: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file")
    parser.add_argument("--passages", type=int, default=40, help="of each engine, over all rounds")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options)
    lines = CORPUS.read_text("utf-8").splitlines()[: options.passages]
    passages = [f"{row['title']}\n{row['text']}" for row in map(json.loads, lines)]
    with server(options) as address:
        common: dict[str, Any] = {"temperature": 0.0, "max_tokens": 300, "structured": "json_schema", "timeout_s": 600}
        roles = {
            "llama.cpp in this process": RoleSettings(
                model=f"gguf/{options.model}", threads=options.threads, slots=SLOTS, context=CONTEXT, **common
            ),
            "transformers in this process": RoleSettings(model=f"transformers/{options.model}", **common),
            "llama.cpp's server": RoleSettings(model="hosted_vllm/local", api_base=f"{address}/v1", **common),
        }
        lms = {name: make_lm(role) for name, role in roles.items()}
        torch.set_num_threads(options.threads)
        for lm in lms.values():
            ask(lm, passages[:1], 1)  # loads the model
        rounds = []
        for number in range(options.rounds):
            part = passages[number :: options.rounds]
            for name, lm in lms.items():
                rounds.append(measured(name, lm, part, options.concurrency))
    if options.json:
        print(json.dumps({"machine": machine(), "rounds": [asdict(each) for each in rounds]}))
    else:
        show(rounds, options)


def measured(name: str, lm: Any, passages: Sequence[str], concurrency: int) -> Round:
    start = time.monotonic()
    usages = ask(lm, passages, concurrency)
    seconds = time.monotonic() - start
    answered = [usage for usage in usages if usage is not None]

    def total(key: str) -> int:
        return sum(int(usage.get(key) or 0) for usage in answered)

    kept = sum(int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0) for usage in answered)
    return Round(name, seconds, total("prompt_tokens"), kept, total("completion_tokens"), usages.count(None))


def ask(lm: Any, passages: Sequence[str], concurrency: int) -> list[dict[str, Any] | None]:
    """What each call used; None where its reply could not be read."""

    def one(passage: str) -> dict[str, Any] | None:
        with dspy.context(lm=lm, adapter=KraqAdapter(), track_usage=True, disable_history=True):
            try:
                prediction = dspy.Predict(NameElements)(passage=passage)
            except AdapterParseError:
                return None
        (usage,) = prediction.get_lm_usage().values()
        return dict(usage)

    with ThreadPoolExecutor(concurrency) as pool:
        return list(pool.map(one, passages))


@contextmanager
def server(options: argparse.Namespace) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--model", options.model, "--threads", options.threads, "--serve", port]
    process = subprocess.Popen([str(each) for each in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(STARTED_S):
            time.sleep(1)
            if process.poll() is not None:
                raise RuntimeError("llama.cpp's server ended before it could be asked.")
            try:
                if httpx.get(f"{address}/health").is_success:
                    break
            except httpx.TransportError:
                continue
        else:
            raise RuntimeError(f"llama.cpp's server did not answer within {STARTED_S} s.")
        yield address
    finally:
        process.kill()
        process.wait(timeout=10)


def serve(options: argparse.Namespace) -> NoReturn:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(options.model)
    parameters.port = options.serve
    parameters.n_parallel = SLOTS
    parameters.n_ctx = CONTEXT * SLOTS
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options.threads
    parameters.use_jinja = True
    running = xllamacpp.Server(parameters)
    print(secrets.token_hex(4), running.listening_address, flush=True)
    while True:
        time.sleep(3600)


def show(rounds: Sequence[Round], options: argparse.Namespace) -> None:
    table = Table(
        "engine", "seconds", "prompt tokens/s", "written tokens/s", "kept", "failed",
        title=f"{options.model.name}, {options.threads} threads, {options.concurrency} at a time; {machine()}",
    )  # fmt: skip
    names = dict.fromkeys(each.engine for each in rounds)
    for name in names:
        own = [each for each in rounds if each.engine == name]
        seconds = sum(each.seconds for each in own)
        read, kept = sum(each.prompt_tokens for each in own), sum(each.kept_tokens for each in own)
        written, failed = sum(each.completion_tokens for each in own), sum(each.failed for each in own)
        share = kept / read if read else 0.0
        table.add_row(
            name, f"{seconds:.1f}", f"{read / seconds:.0f}", f"{written / seconds:.0f}", f"{share:.2f}", str(failed)
        )
    console = Console()
    console.print(table)
    *local, there = ([each.seconds for each in rounds if each.engine == name] for name in names)
    for name, here in zip(names, local, strict=False):
        ratios = [one / other for one, other in zip(here, there, strict=True)]
        console.print(
            f"seconds of {name} over those behind the server: median of rounds {statistics.median(ratios):.2f}, "
            f"{min(ratios):.2f} to {max(ratios):.2f}"
        )


if __name__ == "__main__":
    main()
