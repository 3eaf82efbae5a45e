"""Measures what a scope costs, and whether a view finds what an index of its documents alone finds.

    python benchmarks/scope.py cost [--chunks 10000] [--out runs/scope]
    python benchmarks/scope.py difference [--precision int8] [--out runs/scope]
    python benchmarks/scope.py model --lm gguf/qwen2.5-coder-0.5b [--out runs/scope]

`cost` makes an index of made-up reports (`scale.py`), of which half bear the label of the scope, and asks the same
questions of the whole and of the scope in turn, each in a process of its own. `difference` hides a half of the bundled
passages of HotpotQA, with the packaged encoder in one of its precisions, and asks the bundled questions of the view and
of an index that never had that half. `model` has a real language model write a small scope's summaries and questions
(`kraq precompute --scope`), prints them, and keeps every prompt's inputs and reply in `OUT/replies.jsonl`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback
from scale import QUESTIONS, RETRIEVERS, Hashing, made_up
from stand_in import machine

from kraq_dspy import Document, Scope, Workspace, build_index, bundled_example
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.extend import Chunk
from kraq_dspy.records import Summary
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings, Settings

K = 10
ROUNDS = 15
SCOPE = Scope(["half"])


def labelled(documents: Iterator[Document]) -> Iterator[Document]:
    """Every second one bears the label of the scope."""
    for number, document in enumerate(documents):
        yield replace(document, labels=("half",) if number % 2 else ("rest",))


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def cost(out: Path, chunks: int) -> None:
    path = out / f"labelled-{chunks}.kraq"
    if not (path / "manifest.json").exists():
        build_index(list(labelled(made_up(chunks))), path, embedder=Hashing())
    of_whole = size_of(path / "states")

    began = time.perf_counter()
    with Workspace.open(path, embedder=Hashing()) as space, space.scoped(SCOPE) as scoped:
        made = time.perf_counter() - began
        of_view = size_of(scoped.index.path)
        counts = scoped.index.counts()
    began = time.perf_counter()
    with Workspace.open(path, embedder=Hashing()) as space, space.scoped(SCOPE):
        opened = time.perf_counter() - began

    whole, scope = (asked_apart(path, who) for who in ("whole", "scope"))
    print(f"{machine()}\n{chunks:,} passages, {counts['chunks']:,} of them in the scope")
    print(f"view made in {made:.1f} s, opened again in {opened:.2f} s")
    print(f"disk: view {of_view / 1e6:.1f} MB, whole {of_whole / 1e6:.1f} MB")
    print(f"memory of a process that has asked: whole {whole['rss'] / 1e3:.0f} MB, scope {scope['rss'] / 1e3:.0f} MB")
    for name in RETRIEVERS:
        ratio = scope[name] / whole[name]
        print(f"{name:10} whole {1e3 * whole[name]:7.2f} ms  scope {1e3 * scope[name]:7.2f} ms  ratio {ratio:.2f}")


def asked_apart(path: Path, who: str) -> dict[str, float]:
    command = [sys.executable, __file__, "ask", "--index", str(path), "--who", who]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answers: dict[str, float] = json.loads(done.stdout)
    return answers


def ask(path: Path, who: str) -> None:
    """Prints the median processor seconds of a question by retriever, and the process's memory in kB."""
    scope = SCOPE if who == "scope" else Scope.everything()
    with Workspace.open(path, embedder=Hashing()) as space, space.scoped(scope) as scoped:
        seconds = {}
        for name in RETRIEVERS:
            retrieve = scoped.retriever(name)
            retrieve(QUESTIONS[0], K)  # reads what it needs
            taken = []
            for number in range(ROUNDS):
                began = time.process_time()
                retrieve(QUESTIONS[number % len(QUESTIONS)], K)
                taken.append(time.process_time() - began)
            seconds[name] = statistics.median(taken)
    print(json.dumps({**seconds, "rss": most_memory()}))


def most_memory() -> int:
    """The most memory that this program held, in kB. `getrusage` would count what started it, which made an index."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    return int(status["VmHWM"].split()[0])


def difference(out: Path, precision: str) -> None:
    settings = Settings(encoder=EncoderSettings(precision=precision))
    example = bundled_example()
    documents = [each for each in load_documents(example / "corpus.jsonl") if isinstance(each, Document)]
    rows = [json.loads(line) for line in (example / "questions.jsonl").read_text("utf-8").splitlines()]
    shown = [document for number, document in enumerate(documents) if number % 2]
    corpora = {"all": list(labelled(iter(documents))), "alone": shown}
    paths = {name: out / f"{name}-{precision}.kraq" for name in corpora}
    for name, corpus in corpora.items():
        if not (paths[name] / "manifest.json").exists():
            build_index(corpus, paths[name], settings=settings)

    with (
        Workspace.open(paths["all"]) as space,
        Workspace.open(paths["alone"]) as alone,
        space.scoped(SCOPE) as scoped,
    ):
        print(f"{machine()}\n{space.embedder.name}")
        for name in ("dense", "bm25", "hybrid", "adaptive", "combined"):
            same, apart = 0, 0.0
            recalls: tuple[list[float], list[float]] = ([], [])
            retrievers = scoped.retriever(name), alone.retriever(name)
            for row in rows:
                rankings = [retrieve(row["question"], K) for retrieve in retrievers]
                ids = [[hit.chunk.id for hit in hits] for hits in rankings]
                same += ids[0] == ids[1]
                if ids[0] == ids[1]:
                    pairs = zip(*rankings, strict=True)
                    apart = max([apart, *(abs(first.score - second.score) for first, second in pairs)])
                gold = [chunk.id for id in row["supporting_ids"] for chunk in alone.index.all(Chunk, document_id=id)]
                if gold:
                    for each, of_one in zip(recalls, ids, strict=True):
                        each.append(recall_at_k(frozenset(gold), of_one, K))
            means = [statistics.mean(each) for each in recalls]
            print(
                f"{name:9} same ids {same} of {len(rows)}, scores apart at most {apart:.1e}; "
                f"recall@{K} view {means[0]:.4f}, alone {means[1]:.4f} ({len(recalls[0])} questions)"
            )


STAFF, BOARD = ("staff",), ("board",)
NOTES = (
    Document("canteen", "The canteen", "Anna Berg runs the canteen of Helsinki Works. Anna Berg hired Nils Roos.",
             labels=STAFF),
    Document("menu", "The menu", "Nils Roos cooks for Helsinki Works. Nils Roos came from Turin Museum.", labels=STAFF),
    Document("sale", "The sale", "Zqorvex bought Helsinki Works from Anna Berg. Zqorvex will close the canteen.",
             labels=BOARD),
)  # fmt: skip
"""What the staff may read names those that the board's papers name, too."""


class Calls(BaseCallback):  # type: ignore[misc]
    """What each prompt was made of, and what the model replied; one call at a time."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        if isinstance(instance, dspy.Predict):
            name = instance.signature.__name__
            self.rows.append({"signature": name, "inputs": inputs["kwargs"], "reply": ""})

    def on_adapter_parse_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.rows[-1]["reply"] = inputs["completion"]


def by_model(out: Path, lm: str) -> None:
    path = out / "notes.kraq"
    build_index(NOTES, path)
    role = RoleSettings(lm, max_tokens=400, temperature=0.0, context=2048)
    settings = Settings(roles={"default": role}, run=RunSettings(concurrency=1))
    calls = Calls()
    with Workspace.open(path, settings=settings) as space, dspy.context(callbacks=[calls]):
        began = time.perf_counter()
        space.prepare(Scope(STAFF))
        made = time.perf_counter() - began
        with space.scoped(Scope(STAFF)) as scoped:
            summaries, questions = list(scoped.index.all(Summary)), list(scoped.index.questions())
    (out / "replies.jsonl").write_text("".join(f"{json.dumps(row, default=str)}\n" for row in calls.rows), "utf-8")

    shown = json.dumps([*calls.rows, *map(asdict, summaries), *map(asdict, questions)], default=str)
    print(f'{machine()}\n{lm}: {len(calls.rows)} calls, {made:.0f} s, "Zqorvex" said {shown.count("Zqorvex")} times')
    for summary in summaries:
        print(f"[{summary.model}] {summary.title}: {summary.text}")
    for question in questions:
        print(f"[{question.model}] {question.text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cost", "difference", "ask", "model"))
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--precision", default=EncoderSettings().precision)
    parser.add_argument("--out", type=Path, default=Path("runs/scope"))
    parser.add_argument("--index", type=Path)
    parser.add_argument("--who", choices=("whole", "scope"), default="whole")
    parser.add_argument("--lm", default="gguf/qwen2.5-coder-0.5b")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what == "cost":
        cost(given.out, given.chunks)
    elif given.what == "difference":
        difference(given.out, given.precision)
    elif given.what == "model":
        by_model(given.out, given.lm)
    else:
        ask(given.index, given.who)


if __name__ == "__main__":
    main()
