"""Goes through all that happens to an index, at growing sizes: time and peak memory of each stage, and how they grow.

    python benchmarks/scale.py [--sizes 10000 100000] [--preset thrifty] [--out runs/scale] [--plot]

Text is made up about 30,000 people and 3,000 places, who come up as often as names do; the embedded model answers and
vectors are made by hashing, so what is measured is the library. Each size is built in a process of its own; then, each
in its own again, one document is added, and the index is opened, looked at and asked by every retriever that needs no
preparation. A size that `--out` has is not measured again: an interrupted run goes on with the same command. A slope is
that of the line from the smallest size to the largest on logarithmic scales: 1 is linear, 2 is quadratic.
"""

import argparse
import itertools
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from stand_in import machine

from kraq_dspy.ports import SilentProgress, Vectors
from kraq_dspy.records import Document
from kraq_dspy.settings import PRESETS, Settings, settings_from_dict

RETRIEVERS = ("dense", "bm25", "hybrid", "combined", "pagerank", "adaptive")
ASKED = 10  # questions of each retriever; the median counts
QUESTIONS = [f"Who was the teacher of {name}?" for name in ("Bala Dokov", "Luvi Sarov", "Nota Kirov", "Meri Sunov")]


def made_up(chunks: int) -> Iterator[Document]:
    """Names come up as often as names do: the n-th of them about 1/n times as often as the first."""
    chance = random.Random(0)
    syllables = [a + b for a in ("ba", "do", "ki", "lu", "me", "no", "ra", "su", "ti", "va") for b in "lmnrstvxyz"]
    people = [f"{first.title()}a {last.title()}ov" for first in syllables for last in syllables * 3][:30_000]
    people = [f"{name}{'aeiou'[number % 5]}k" for number, name in enumerate(people)]
    places = [f"{first.title()}{last}burg" for first in syllables for last in syllables[:30]]
    often = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(people))))
    verbs = ("met", "wrote to", "worked with", "was the teacher of", "built a mill for", "sold a ship to")
    for number in range(chunks):
        who = chance.choices(people, cum_weights=often, k=5)
        where = chance.choices(places, k=3)
        sentences = [
            f"{a} {chance.choice(verbs)} {b} in {place}." for a, b, place in zip(who, who[1:], where, strict=False)
        ]
        yield Document(
            f"d{number:07}", f"Report {number}", " ".join([*sentences, f"This was in {1500 + number % 500}."])
        )


class Hashing:
    """Vectors by chance, the same for the same text; unit length."""

    name, dimension = "hashing", 384

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        rows = np.stack([np.random.default_rng(zlib.crc32(text.encode())).standard_normal(384) for text in texts])
        unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self.encode_queries(texts)


class StageFigures(SilentProgress):
    """Seconds of each stage from its start to its end, by the clock and of the processor (stages overlap), and the
    process's peak so far at its end.

    They go to `file` as they come, so that a run that is cut off leaves what it had."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.stages: dict[str, dict[str, float]] = {}
        self._started: dict[str, tuple[float, float]] = {}

    def start(self, stage: str, total: int | None) -> None:
        self._started.setdefault(stage, (time.monotonic(), cpu_s()))
        self.file.with_suffix(".begun").write_text(f"{stage} of {total}")

    def finish(self, stage: str) -> None:
        wall, cpu = self._started.get(stage, (time.monotonic(), cpu_s()))
        seconds = {"s": round(time.monotonic() - wall, 1), "cpu_s": round(cpu_s() - cpu, 1)}
        self.stages[stage] = {**seconds, "peak_mb": round(peak_mb())}
        self.file.with_suffix(".part").write_text(json.dumps(self.stages))


def build(chunks: int, index: Path, file: Path, preset: str | None) -> dict[str, Any]:
    from kraq_dspy.indexing.index.build import build_index

    start, progress = time.monotonic(), StageFigures(file)
    settings = settings_from_dict(PRESETS[preset]) if preset else Settings()
    report = build_index(made_up(chunks), index, settings=settings, embedder=Hashing(), progress=progress)
    stages = {**progress.stages, "all": whole(start)}
    size = sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
    return {"build": stages, "counts": report.counts, "disk_mb": size >> 20}


def add(index: Path, file: Path) -> dict[str, Any]:
    from kraq_dspy.indexing.index.change import add_documents

    document = Document(
        "new", "Report", "Bala Dokov met Luvi Sarov in Norburg. Bala Dokov wrote to Meri Sunov in Tarburg."
    )
    start, progress = time.monotonic(), StageFigures(file)
    add_documents(index, [document], embedder=Hashing(), progress=progress)
    return {"add one document": whole(start)}


def ask(index: Path, name: str) -> dict[str, Any]:
    """The first search of a process with opening the index, and the median of some more."""
    from kraq_dspy.workspace import Workspace

    start = time.monotonic()
    with Workspace.open(index, embedder=Hashing()) as space:
        retrieve = space.retriever(name)
        retrieve(QUESTIONS[0], 15)
        first = time.monotonic() - start
        seconds, cpu = [], time.process_time()
        for question in itertools.islice(itertools.cycle(QUESTIONS), ASKED):
            begun = time.monotonic()
            retrieve(question, 15)
            seconds.append(time.monotonic() - begun)
        cpu = (time.process_time() - cpu) / ASKED
    figures = {"first_s": round(first, 2), "s": round(statistics.median(seconds), 4), "cpu_s": round(cpu, 4)}
    return {f"search: {name}": {**figures, "peak_mb": round(peak_mb())}}


def status(index: Path) -> dict[str, Any]:
    start = time.monotonic()
    command = [sys.executable, "-m", "kraq_dspy", "status", str(index), "--json"]
    subprocess.run(command, check=True, capture_output=True)
    return {"kraq status": {"s": round(time.monotonic() - start, 2)}}


def whole(start: float) -> dict[str, float]:
    """Of the process so far, with those that it began."""
    return {"s": round(time.monotonic() - start, 1), "cpu_s": round(cpu_s(), 1), "peak_mb": round(peak_mb())}


def cpu_s() -> float:
    """Processor seconds of the process and of those that it began and that have ended: those that parse."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def peak_mb() -> float:
    """Of this process, without those that parse."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_a_process(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(size: int, out: Path, preset: str | None) -> dict[str, Any]:
    """Every step's figures, each kept as soon as it is there."""
    file, index = out / f"{size}.json", out / f"{size}.kraq"
    figures: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"load": os.getloadavg()[0]}
    steps = [("build", "build")] + [(f"search: {name}", name) for name in RETRIEVERS]
    for key, step in [*steps, ("kraq status", "status"), ("add one document", "add")]:
        if key not in figures:
            arguments = ["--step", step, "--sizes", str(size), "--index", str(index), "--out", str(out)]
            figures |= in_a_process(*arguments, *(["--preset", preset] if preset else []))
            file.write_text(json.dumps(figures, indent=2))
    return figures


def rows(figures: Mapping[int, Mapping[str, Any]]) -> list[tuple[str, str, dict[int, float]]]:
    """(what, unit, value by size): of each stage of the build and of each step its seconds and its peak."""
    by_row: dict[tuple[str, str], dict[int, float]] = {}
    for size, measured in figures.items():
        steps = {**{f"build: {stage}": of for stage, of in measured["build"].items()}, **measured}
        for what, values in steps.items():
            if isinstance(values, dict):
                for unit in ("s", "cpu_s", "first_s", "peak_mb"):
                    if unit in values:
                        by_row.setdefault((what, unit), {})[size] = values[unit]
        by_row.setdefault(("on the disk", "mb"), {})[size] = measured["disk_mb"]
    return [(what, unit, values) for (what, unit), values in by_row.items()]


def slope(values: Mapping[int, float]) -> float | None:
    (small, low), (large, high) = min(values.items()), max(values.items())
    return math.log(high / low) / math.log(large / small) if large > small and low > 0 and high > 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--preset", choices=list(PRESETS), help="of the settings of the index; another --out, then")
    parser.add_argument("--out", type=Path, default=Path("runs/scale"))
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--index", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        file = options.out / f"{options.sizes[0]}-{options.step}.stages"
        steps = {
            "build": lambda: build(options.sizes[0], options.index, file, options.preset),
            "add": lambda: add(options.index, file),
            "status": lambda: status(options.index),
        }
        figures_of_step = steps[options.step]() if options.step in steps else ask(options.index, options.step)
        print(json.dumps(figures_of_step))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    figures = {size: measure(size, options.out, options.preset) for size in options.sizes}
    table = rows(figures)
    print(f"{machine()}\n\n| | {' | '.join(f'{size:,}' for size in figures)} | slope |")
    print(f"|---|{'---|' * (len(figures) + 1)}")
    for what, unit, values in table:
        cells = " | ".join(f"{values[size]:,}" if size in values else "" for size in figures)
        grows = slope(values)
        print(f"| {what}, {unit} | {cells} | {'' if grows is None else f'{grows:.2f}'} |")


if __name__ == "__main__":
    main()
