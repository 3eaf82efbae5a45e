"""Prints what kraq takes: processor, memory and wall time of an index, a change and a question, in one run.

    python benchmarks/light.py [--data ../shared/data] [--out runs/light] [--only ask meetings ...] [--no-peer]

Each line is a command in a process of its own. Processor seconds are of all its processes, and so is the peak; beside
it stands the largest that its first process was alone. Ratios are to `import dspy` and, of the 60 articles with the
stand-in model (200 ms a call, 25 in flight), to fast-graphrag in an environment of its own. What was measured is kept
under --out, and not measured again: delete a file of figures/ for that.
"""

import argparse
import gzip
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))  # a script finds what is beside it, also for a test

from peers.corpus import as_articles, read_pieces
from peers.process import run_measured
from peers.run import Bench, bench_of
from peers.systems import BY_NAME
from stand_in import machine, stand_in

BENCHMARKS = Path(__file__).resolve().parent
MEETINGS, PAGES, CHUNKS = 650, 150, 5_000
QUESTION = "What was decided about the remote control?"
DSPY, PEER = "import dspy", "fast-graphrag"
Figures = dict[str, Any]


class Light:
    """Measures each line once, in the folder `out`, from the data sets in `data`."""

    def __init__(self, out: Path, data: Path) -> None:
        self.out, self.data = out, data
        (out / "figures").mkdir(parents=True, exist_ok=True)

    def of(self, name: str, measure: Callable[[], Figures]) -> Figures:
        """The figures of a line, measured now unless they are kept."""
        file = self.out / "figures" / f"{name.replace(' ', '-')}.json"
        if not file.exists():
            print(f"{name} ...", file=sys.stderr, flush=True)
            file.write_text(json.dumps({"load": os.getloadavg()[0], **measure()}, indent=1), "utf-8")
        figures: Figures = json.loads(file.read_text("utf-8"))
        return figures

    def command(self, name: str, *words: str) -> Figures:
        """What Python takes for these words."""
        return self.of(name, lambda: self._run(name, words))

    def _run(self, name: str, words: Sequence[str]) -> Figures:
        environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)}
        log = self.out / "logs" / f"{name}.log"
        taken = run_measured([sys.executable, *words], environment, log)
        if taken.exit_code:
            raise SystemExit(f"{name}: exit code {taken.exit_code}; see {log}")
        return asdict(taken)

    def corpus(self, name: str, data_set: str, count: int) -> Path:
        """The first documents of a data set as a file of JSON lines."""
        file = self.out / f"{name}.jsonl"
        with gzip.open(self.data / data_set / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines][:count]
        fields = [{key: row[key] for key in ("id", "title", "text") if row.get(key)} for row in rows]
        file.write_text("".join(json.dumps(row) + "\n" for row in fields), "utf-8")
        return file

    def index(self, name: str, data_set: str, count: int) -> Figures:
        """What an index with the embedded model takes; the index stays for a question."""
        folder = self.out / f"{name}.kraq"

        def measure() -> Figures:
            shutil.rmtree(folder, ignore_errors=True)
            words = ["-m", "kraq_dspy", "index", str(self.corpus(name, data_set, count)), "--out", str(folder)]
            return self._run(name, [*words, "--lm", "embedded"])

        return self.of(name, measure)

    def articles(self, *, with_peer: bool) -> dict[str, Figures]:
        """What kraq and, if it is wanted, fast-graphrag take for the 60 articles of the peers' table."""
        bench: Bench = bench_of(as_articles(read_pieces(self.data)), self.out / "peers")
        names = ["kraq", "kraq-thrifty", *([PEER] if with_peer else [])]
        figures = {}
        with stand_in(latency_ms=200) as server:
            for name in names:
                measure = partial(bench.index, BY_NAME[name], server, 0)
                figures[f"60 articles, {name}"] = self.of(f"articles {name}", measure)
        return figures

    def scale(self) -> dict[str, Figures]:
        """What made-up chunks take with the preset thrifty, and a document more, by `scale.py`."""
        out, file = self.out / "scale", self.out / "scale" / f"{CHUNKS}.json"
        words = [str(BENCHMARKS / "scale.py"), "--sizes", str(CHUNKS), "--preset", "thrifty", "--out", str(out)]
        self.command("scale", *words)
        figures: Figures = json.loads(file.read_text("utf-8"))
        steps = {
            f"{CHUNKS:,} chunks, thrifty": figures["build"]["all"],
            "one document more": figures["add one document"],
        }
        return {name: {**each, "wall_s": each["s"], "own_mb": each["peak_mb"]} for name, each in steps.items()}


def table(figures: dict[str, Figures]) -> str:
    """A line for each; ratios are of the processor's seconds to the two that are compared with."""
    lines = [
        "| | wall s | CPU s | peak MB, all processes | the first alone | CPU / import dspy | CPU / fast-graphrag |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    peer = figures.get(f"60 articles, {PEER}")
    for name, each in figures.items():
        to_peer = f"{each['cpu_s'] / peer['cpu_s']:.2f}" if peer and name.startswith("60 articles") else ""
        to_dspy = f"{each['cpu_s'] / figures[DSPY]['cpu_s']:.1f}"
        cells = [f"{each['wall_s']:.1f}", f"{each['cpu_s']:.1f}", f"{each['peak_mb']:.0f}", f"{each['own_mb']:.0f}"]
        lines.append(f"| {name} | {' | '.join(cells)} | {to_dspy} | {to_peer} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    groups = ("ask", "meetings", "pages", "articles", "scale")
    parser.add_argument("--only", nargs="+", choices=groups, default=groups)
    parser.add_argument("--no-peer", action="store_true", help="without fast-graphrag, which downloads its packages")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/light"))
    options = parser.parse_args()

    light = Light(options.out.resolve(), options.data)
    figures = {DSPY: light.command(DSPY, "-c", "import dspy")}
    figures["kraq ask --help"] = light.command("kraq ask --help", "-m", "kraq_dspy", "ask", "--help")
    if {"ask", "meetings"} & set(options.only):
        figures[f"{MEETINGS} meetings, embedded"] = light.index("meetings", "meetings", MEETINGS)
    if "ask" in options.only:
        words = ["-m", "kraq_dspy", "ask", str(light.out / "meetings.kraq"), QUESTION]
        figures["kraq ask"] = light.command("kraq ask", *words)
    if "pages" in options.only:
        figures["pages of documentation"] = light.index("pages", "docs_vite", PAGES)
    if "articles" in options.only:
        figures |= light.articles(with_peer=not options.no_peer)
    if "scale" in options.only:
        figures |= light.scale()

    loads = [each["load"] for each in figures.values() if "load" in each]
    print(f"{machine()}, load average {min(loads):.1f} to {max(loads):.1f}\n\n{table(figures)}")


if __name__ == "__main__":
    main()
