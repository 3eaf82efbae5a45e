"""Indexes the same 60 articles with this library and with its peers, against the same stand-in server, and compares.

    python benchmarks/peers/run.py [--peers kraq lightrag ...] [--data ../shared/data] [--out runs/peers]
    python benchmarks/peers/run.py --retrieval [--questions 200]

Each peer runs in an environment of its own, made under --out. Calls take 200 ms, 25 may be in flight; the server makes
the embeddings too. What was measured is kept under --out and not measured again: delete a file of figures/ for that.
`--retrieval` indexes once more, with MiniLM's embeddings for every system and answers without delay, and asks the
questions that the articles can answer in each of the systems' own ways that give out the passages they retrieved.
"""

import argparse
import importlib.util
import json
import math
import os
import shutil
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script finds what is beside it, not what is above

from peers.corpus import Asked, as_articles, read_pages, read_pieces, read_questions
from peers.environments import python_of
from peers.process import run_measured, served
from peers.retrieval import measure
from peers.systems import ALL, BY_NAME, System
from peers.table import graph_table, indexing_table, retrieval_table
from stand_in import StandIn, machine, stand_in

from kraq_dspy.asset.corpus.tokens import count_tokens

BENCHMARKS = Path(__file__).resolve().parents[1]
IN_FLIGHT, LATENCY_S = 25, 0.2
COMPARED = 2000  # tokens of passages
INSIDE = Path(__file__).with_name("inside")


class Bench:
    """A folder `out` with environments, indexes and figures; `articles` is the file that every system reads. A command
    that takes longer than `limit_s` fails."""

    def __init__(
        self,
        out: Path,
        articles: Path,
        *,
        in_flight: int = IN_FLIGHT,
        model: str = "stand-in",
        limit_s: float = math.inf,
    ) -> None:
        self.out, self.articles = out, articles
        self.in_flight, self.model, self.limit_s = in_flight, model, limit_s

    def index(self, system: System, server: StandIn, number: int) -> dict[str, Any]:
        """The figures of round `number`, measured now unless they are kept."""
        file = self.out / "figures" / f"{system.name}-{number}.json"
        if file.exists():
            return _read(file)
        folder = self.out / "indexes" / system.name
        job = self.job(system, folder, server.url, server.url)
        self.run(system, "load", job, folder / "load.log")
        server.reset()
        load = os.getloadavg()[0]
        taken = self.run(system, "index", job, folder / "index.log")
        stats = server.stats()
        figures = {
            **asdict(taken),
            "calls": stats["requests"],
            "prompt_tokens": stats["prompt_tokens"],
            "most_in_flight": stats["max_concurrency"],
            "kinds": {kind: seen["requests"] for kind, seen in stats["kinds"].items()},
            "embedded_texts": stats["embeddings"]["inputs"],
            "load": load,
            "machine": machine(),
        }
        self.run(system, "count", job, folder / "count.log")
        _write(file, {**figures, "counts": _read(folder / "counts.json")})
        return _read(file)

    def retrieve(self, system: System, mode: str, questions: Sequence[Asked], servers: "Servers") -> dict[str, Any]:
        """What is in the passages that the system retrieves."""
        retrieved, calls = self.passages(system, mode, questions, servers)
        return {"title": f"{system.title}: {mode}", "calls": calls, **measure(retrieved, questions)}

    def passages(
        self, system: System, mode: str, questions: Sequence[Asked], servers: "Servers"
    ) -> tuple[list[dict[str, Any]], float]:
        """What the system retrieves for each question (see `inside/job.py`), and the calls of a question. It is indexed
        and asked the questions unless that is kept."""
        folder = self.out / "indexes" / f"{system.name}-minilm"
        file = self.out / "figures" / f"{system.name}-{mode}-{len(questions)}.json"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            complete = folder / "complete"
            job = self.job(system, folder, servers.chat.url, servers.embeddings, keep=complete.exists())
            if not complete.exists():
                self.run(system, "index", job, folder / "index.log")
                complete.touch()
            questions_file = folder / "questions.jsonl"
            questions_file.write_text("".join(json.dumps(asdict(question)) + "\n" for question in questions), "utf-8")
            _write(job, {**_read(job), "questions": str(questions_file), "mode": mode, "out": str(file) + "l"})
            servers.chat.reset()
            self.run(system, "retrieve", job, folder / f"{mode}.log")
            _write(file, {"calls": servers.chat.stats()["requests"] / len(questions)})
        lines = file.with_suffix(".jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines], _read(file)["calls"]

    def job(self, system: System, folder: Path, chat: str, embeddings: str, keep: bool = False) -> Path:
        """The file that says what is to be done, in a folder that is empty unless it is kept."""
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        task = {
            "articles": str(self.articles),
            "folder": str(folder),
            "chat": chat,
            "embeddings": embeddings,
            "in_flight": self.in_flight,
            "model": self.model,
            "chunks": system.chunks,
            "options": dict(system.options),
        }
        _write(folder / "job.json", task)
        return folder / "job.json"

    def run(self, system: System, verb: str, job: Path, log: Path) -> Any:
        """Raises RuntimeError with the end of the log where it fails."""
        task = _read(job)
        python = python_of(system.peer, self.out)
        environment = {
            **os.environ,
            "TIKTOKEN_CACHE_DIR": str(tokenizers()),
            "OPENAI_API_KEY": "not-needed",
            "OPENAI_BASE_URL": task["chat"],
            "GRAPHRAG_API_KEY": "not-needed",
            "CONCURRENT_TASK_LIMIT": str(task["in_flight"]),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "HF_HUB_OFFLINE": "1",
        }
        if system.peer is None:
            environment["PYTHONPATH"] = str(BENCHMARKS.parent)
        else:
            environment.pop("PYTHONPATH", None)
        taken = run_measured(
            [str(python), str(INSIDE / system.script), verb, str(job)], environment, log, limit_s=self.limit_s
        )
        if taken.exit_code:
            raise RuntimeError(f"{system.title}, {verb}: exit code {taken.exit_code}. {log} ends:\n{_end_of(log)}")
        return taken


@dataclass(frozen=True)
class Servers:
    """`embeddings` is an address."""

    chat: StandIn
    embeddings: str


def bench_of(articles: Sequence[str], out: Path) -> Bench:
    """In the folder `out`, where the articles are written."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "articles.jsonl"
    rows = [{"id": f"article-{number:02}", "text": text} for number, text in enumerate(articles)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return Bench(out, path)


def compare_indexing(bench: Bench, systems: Sequence[System], rounds: int, corpus_tokens: int) -> str:
    measured: dict[str, list[dict[str, Any]]] = {}
    with stand_in(latency_ms=LATENCY_S * 1000) as server:
        for number in range(rounds):
            for system in systems:
                try:
                    figures = bench.index(system, server, number)
                except RuntimeError as error:
                    print(error, file=sys.stderr, flush=True)
                    continue
                print(
                    f"{system.name}: {figures['wall_s']:.1f} s, {figures['calls']} calls", file=sys.stderr, flush=True
                )
                measured.setdefault(system.name, []).append(figures)
    titles = {system.name: system.title for system in systems}
    loads = [figures["load"] for runs in measured.values() for figures in runs]
    about = f"{machine()}, load average {min(loads):.1f} to {max(loads):.1f} (median {statistics.median(loads):.1f})"
    table = indexing_table(measured, titles, corpus_tokens=corpus_tokens, latency_s=LATENCY_S, in_flight=IN_FLIGHT)
    return f"{about}\n\n{table}\n\n{graph_table(measured, titles)}"


def compare_retrieval(bench: Bench, systems: Sequence[System], questions: Sequence[Asked]) -> str:
    rows = []
    with stand_in() as chat, served(Path(__file__).with_name("encoder_server.py")) as embeddings:
        for system in systems:
            for mode in system.modes:
                try:
                    rows.append(bench.retrieve(system, mode, questions, Servers(chat, embeddings)))
                except RuntimeError as error:
                    print(error, file=sys.stderr, flush=True)
                    continue
                print(f"{system.name}, {mode}: {rows[-1]['ms']:.0f} ms", file=sys.stderr, flush=True)
    about = f"{machine()}, {len(questions)} questions; recall of their facts by tokens of passages"
    return f"{about}\n\n{retrieval_table(rows, COMPARED)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [system.name for system in ALL]
    parser.add_argument("--peers", nargs="+", choices=names, default=names, help="what to measure, this library first")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--pages", help="a data set, of which a tenth of the characters is indexed instead")
    parser.add_argument("--out", type=Path, default=Path("runs/peers"))
    parser.add_argument("--rounds", type=int, default=1, help="medians are of so many")
    parser.add_argument("--retrieval", action="store_true", help="ask questions too")
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    systems = [BY_NAME[name] for name in options.peers]
    pieces = read_pieces(options.data)
    articles = read_pages(options.data, options.pages) if options.pages else as_articles(pieces)
    bench = bench_of(articles, options.out.resolve())
    corpus_tokens = sum(map(count_tokens, articles))
    print(f"{len(articles)} articles, {corpus_tokens:,} tokens")
    print(compare_indexing(bench, systems, options.rounds, corpus_tokens))
    if options.retrieval:
        questions = read_questions(options.data, pieces, options.questions)
        print("\n" + compare_retrieval(bench, systems, questions))


def tokenizers() -> Path:
    """Where litellm keeps the vocabularies that tiktoken would download. It is not imported: that would ask the net."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise RuntimeError("The peers' tokenizers come with litellm: pip install litellm")
    return Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"


def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1), "utf-8")


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-15:])


if __name__ == "__main__":
    main()
