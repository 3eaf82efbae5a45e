"""Plants 40 faults and 40 harmless changes, and asks which of them `kraq eval --fail-if-worse` sees by made questions.

    python benchmarks/gate.py run hotpotqa --data DATA --out runs/gate
    python benchmarks/gate.py seconds hotpotqa --out runs/gate
    python benchmarks/gate.py report hotpotqa --out runs/gate

`run` indexes up to 400 passages with the evidence of up to 200 questions of people, and makes test sets of 200 rows
(of 200 and 400 with `--rows 200 400`) without a language model: one with the default shares of kinds, or those that
`--sets` names (`SHARES_OF`). The changes and the strengths in which they can be
made stand in `planted.py`. Human questions alone choose the strength: of a fault the one whose cost is nearest to
the cost that it is to have, which are spread evenly over 1 to 10 points; of a harmless change the first that alters a
ranking and people's recall no more than chance does. Only then is the changed system asked the made questions. What
was done is kept, and the same command resumes. `report` judges as the gate does: a run is worse if the interval of the
paired difference in recall@10 lies below 0.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np
from parts import part_of
from planted import FAULTS, HARMLESS, Planted, Setup

from kraq_dspy import Workspace
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.store.sync import chunk_point
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.eval.datasets import load_local
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.eval.statistics import Interval, bootstrap_difference
from kraq_dspy.indexing import build_index
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.ports import Embedder, Retriever, Vectors
from kraq_dspy.records import Chunk, Document
from kraq_dspy.retrievers.in_memory import RecordsInMemory
from kraq_dspy.retrievers.words_and_meaning import BM25Retriever, DenseRetriever, HybridRetriever
from kraq_dspy.settings import EncoderSettings
from kraq_dspy.testset import kinds
from kraq_dspy.testset.making import TestsetPlan, make_testset

PASSAGES, PEOPLE = 400, 200
ROWS = (50, 100, 200, 400)
"""Rows of a test set for which the gate's power is told."""
K = 10
COSTS = (0.01, 0.10)
"""Recall that a fault must cost human questions to count."""
CHANCE = 0.01
"""Most by which people's recall may differ after a harmless change, whatever the interval says."""
SHARES_OF: Mapping[str, Mapping[str, float]] = {
    "made": {kind: share for kind, share in kinds.SHARES.items() if kind not in kinds.WITHOUT_ANSWER},
    "fact": {kinds.FACT: 1},
    "broad": {kinds.BROAD: 1},
    "linked": {kinds.BRIDGE: 1, kinds.LIST: 1, kinds.COMPARISON: 1},
}
"""Shares by kind of the test sets that can be made, all of questions that have a recall."""

Asked = Sequence[tuple[str, frozenset[str]]]
"""Questions with the ids of the documents that answer them."""


class KeptVectors:
    """An encoder that encodes no text twice, in this run or in a later one."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension
        self._embedder, self._folder = embedder, folder
        self._rows: dict[tuple[str, str], Vectors] = {}
        self._unsaved: dict[tuple[str, str], Vectors] = {}

        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(folder.glob("*.npz")):
            stored = np.load(file, allow_pickle=False)
            keys = [tuple(json.loads(key)) for key in stored["keys"]]
            self._rows |= dict(zip(keys, stored["rows"], strict=True))

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._encoded("query", texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self._encoded("passage", texts)

    def _encoded(self, side: str, texts: Sequence[str]) -> Vectors:
        unknown = [text for text in dict.fromkeys(texts) if (side, text) not in self._rows]
        if unknown:
            encode = self._embedder.encode_queries if side == "query" else self._embedder.encode_passages
            new = {(side, text): row for text, row in zip(unknown, encode(unknown), strict=True)}
            self._rows |= new
            self._unsaved |= new
        rows: Vectors = np.array([self._rows[side, text] for text in texts], np.float32)
        return rows

    def save(self) -> None:
        """Write what is new into a file of its own."""
        if not self._unsaved:
            return
        keys = np.array([json.dumps(key) for key in self._unsaved])
        number = len(list(self._folder.glob("*.npz")))
        np.savez(self._folder / f"{number:05}.npz", keys=keys, rows=np.array([*self._unsaved.values()], np.float32))
        self._unsaved = {}


@dataclass(frozen=True)
class FixedQuestions:
    """An encoder whose vectors of questions are given."""

    name: str
    dimension: int
    rows: Mapping[str, Vectors]

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        rows: Vectors = np.array([self.rows[text] for text in texts], np.float32)
        return rows

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError("passages are in the store already")


def found_by(setup: Setup, questions: Sequence[str], encoder: KeptVectors) -> list[list[str]]:
    """Ids of the documents that the system finds for each question, best first."""
    chunks = setup.kept([chunk for document in setup.documents for chunk in chunk_document(document, setup.chunks)])
    texts = [setup.write(chunk) for chunk in chunks]
    put = [setup.ask(question) for question in questions]
    if setup.retriever == "bm25":  # it looks at no vector
        vectors, rows = (np.zeros((len(each), encoder.dimension), np.float32) for each in (texts, put))
    else:
        vectors = setup.passages(encoder.encode_passages(texts))
        rows = setup.questions(encoder.encode_queries(put))
    rows = (1 - setup.leak) * rows + setup.leak * np.roll(rows, 1, axis=0)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    with tempfile.TemporaryDirectory() as folder:
        store = LocalVectorStore(Path(folder) / "vectors", encoder.dimension)
        payloads = [chunk_point(chunk).payload for chunk in chunks]
        store.upsert([chunk.id for chunk in chunks], vectors, texts, payloads)
        by_text = dict(zip(put, rows, strict=True))
        embedder = FixedQuestions(encoder.name, encoder.dimension, by_text)
        retrieve = retriever_of(setup, chunks, vectors, store, embedder)
        cells = Cells(vectors, [chunk.id for chunk in chunks]) if setup.probed < 1 else None
        rankings = []
        for question in put:
            unseen = cells.unseen(by_text[question], setup.probed) if cells is not None else ()
            hits = [hit for hit in retrieve(question, setup.k, exclude=unseen) if hit.score >= setup.least]
            rankings.append(list(dict.fromkeys(hit.chunk.document_id for hit in hits)))
        store.close()
    return rankings


def retriever_of(
    setup: Setup, chunks: Sequence[Chunk], vectors: Vectors, store: LocalVectorStore, embedder: FixedQuestions
) -> Retriever:
    records = RecordsInMemory(chunks, vectors)
    if setup.retriever == "bm25":
        return BM25Retriever(records, store)
    if setup.retriever == "hybrid":
        return HybridRetriever(records, store, embedder, **{"weight": 0.5, **setup.options})
    return DenseRetriever(records, store, embedder)


class Cells:
    """An approximate search's cells (k-means), of which only the nearest are looked into."""

    def __init__(self, vectors: Vectors, ids: Sequence[str]) -> None:
        from sklearn.cluster import KMeans  # a second, which the tests of this file do not need

        means = KMeans(max(2, round(len(ids) ** 0.5)), n_init=1, random_state=0).fit(vectors)
        self._centres, self._cell_of, self._ids = means.cluster_centers_, means.labels_, np.array(ids)

    def unseen(self, question: Vectors, share: float) -> list[str]:
        nearest = np.argsort(-(self._centres @ question))
        probed = nearest[: max(1, round(share * len(nearest)))]
        ids: list[str] = self._ids[~np.isin(self._cell_of, probed)].tolist()
        return ids


def make_questions(folder: Path, people: Asked, sets: Sequence[str], sizes: Sequence[int]) -> None:
    """Write human questions and the synthetic test sets of these names and sizes to `questions.json`, if not there."""
    questions = read_questions(folder) if (folder / "questions.json").exists() else {"people": people}
    labels = {f"{name} {rows}": (name, rows) for name in sets for rows in sizes}
    missing = {label: made for label, made in labels.items() if label not in questions}
    if missing:
        with Workspace.open(folder / "index.kraq") as space:
            for label, (name, rows) in missing.items():
                file = folder / f"{name}-{rows}.jsonl"
                plan = TestsetPlan(rows, SHARES_OF[name])
                testset = make_testset(space, plan=plan, draft=file.with_suffix(".draft"))
                testset.save(file)
                questions[label] = [(row.question, frozenset(row.supporting_ids)) for row in testset]

    saved = {label: [[question, sorted(gold)] for question, gold in rows] for label, rows in questions.items()}
    (folder / "questions.json").write_text(json.dumps(saved, ensure_ascii=False), "utf-8")


def read_questions(folder: Path) -> dict[str, Asked]:
    stored = json.loads((folder / "questions.json").read_text("utf-8"))
    return {label: [(question, frozenset(gold)) for question, gold in rows] for label, rows in stored.items()}


@dataclass(frozen=True)
class Outcome:
    """What a change did to a set of questions: recall by question before and after, and whether a ranking changed."""

    before: Sequence[float]
    after: Sequence[float]
    is_reordered: bool

    def difference(self, rows: int | None = None) -> Interval:
        """The gate's own interval, over the first `rows` questions."""
        return bootstrap_difference(self.after[:rows], self.before[:rows])


def is_fault(people: Interval) -> bool:
    """Whether it cost human questions 1 to 10 points of recall."""
    return COSTS[0] <= -people.estimate <= COSTS[1]


def is_harmless(people: Outcome) -> bool:
    """Whether it altered rankings, and people's recall no more than chance does."""
    difference = people.difference()
    return people.is_reordered and difference.low <= 0 <= difference.high and abs(difference.estimate) < CHANCE


def is_caught(outcome: Outcome, rows: int | None) -> bool:
    return outcome.difference(rows).high < 0


def costs_to_have(count: int) -> list[float]:
    """The cost that each of so many faults is to have, spread evenly over 1 to 10 points, in an order that is drawn."""
    least, most = COSTS
    costs = [least + (most - least) * (place + 0.5) / count for place in range(count)]
    random.Random(0).shuffle(costs)
    return costs


def strength_of_fault(fault: Planted, cost: float, people: Callable[[Any], Outcome]) -> Any:
    """The strength that costs human questions 1 to 10 points, and of these nearest to `cost`; None if none does.

    Strengths beyond the first that costs at least so much are not tried.
    """
    differences = {}
    for strength in fault.strengths:
        differences[strength] = people(strength).difference()
        if -differences[strength].estimate >= cost:
            break

    counting = [strength for strength, difference in differences.items() if is_fault(difference)]
    return min(counting, key=lambda strength: abs(cost + differences[strength].estimate), default=None)


def strength_of_harmless(change: Planted, people: Callable[[Any], Outcome]) -> Any:
    """The first strength that alters rankings, and people's recall no more than chance does; None if none does."""
    return next((strength for strength in change.strengths if is_harmless(people(strength))), None)


Ask = Callable[[Planted, Any, Sequence[str]], list[list[str]]]
"""Asks a system with a change of that strength questions: ids of the documents that it finds for each."""


class Answers:
    """What the changed systems find for each set of questions, kept in a file each; `ask` is for what is not there."""

    def __init__(self, folder: Path, ask: Ask | None = None) -> None:
        self.questions = read_questions(folder)
        self._folder, self._ask = folder / "answers", ask
        self._folder.mkdir(exist_ok=True)

    @property
    def asked(self) -> list[str]:
        """Names of the sets that hold any question."""
        return [label for label, questions in self.questions.items() if questions]

    def outcome(self, planted: Planted, strength: Any, label: str) -> Outcome:
        """What a change of that strength does to the questions `label`."""
        unchanged = Planted(f"base {planted.retriever}", lambda _: lambda setup: setup, (0,), planted.retriever)
        before = self._found(unchanged, 0, label)
        after = self._found(planted, strength, label)

        gold = [gold for _, gold in self.questions[label]]
        order = list(range(len(gold)))
        random.Random(0).shuffle(order)  # so that the first rows are of all kinds
        return Outcome(
            [recall_at_k(gold[place], before[place], K) for place in order],
            [recall_at_k(gold[place], after[place], K) for place in order],
            before != after,
        )

    def choices(self) -> Iterator[tuple[Planted, Any]]:
        """Yield each fault, then each harmless change, with the strength that human questions choose, or None."""
        for fault, cost in zip(FAULTS, costs_to_have(len(FAULTS)), strict=True):
            yield fault, strength_of_fault(fault, cost, self._of_people(fault))
        for change in HARMLESS:
            yield change, strength_of_harmless(change, self._of_people(change))

    def chosen(self) -> tuple[dict[Planted, Any], dict[Planted, Any]]:
        """Return the strengths of the faults and of the harmless changes that count."""
        strengths = {planted: strength for planted, strength in self.choices() if strength is not None}
        faults, harmless = (
            {planted: strengths[planted] for planted in changes if planted in strengths}
            for changes in (FAULTS, HARMLESS)
        )
        return faults, harmless

    def _of_people(self, planted: Planted) -> Callable[[Any], Outcome]:
        return lambda strength: self.outcome(planted, strength, "people")

    def _found(self, planted: Planted, strength: Any, label: str) -> list[list[str]]:
        words = f"{planted.name} {strength} {label}".lower()
        file = self._folder / f"{''.join(letter if letter.isalnum() else '-' for letter in words)}.json"
        if not file.exists():
            if self._ask is None:
                raise FileNotFoundError(f"{str(file)!r} is not there; 'gate.py run' makes it.")
            started = time.process_time()
            found = self._ask(planted, strength, [question for question, _ in self.questions[label]])
            file.write_text(json.dumps(found), "utf-8")
            print(f"{planted.name}, {strength}, {label}: {time.process_time() - started:.1f} CPU s", flush=True)
        stored: list[list[str]] = json.loads(file.read_text("utf-8"))
        return stored


@dataclass(frozen=True)
class Extent:
    """How many questions of people and passages are taken, and which test sets are made, in which sizes."""

    people: int
    passages: int
    sets: Sequence[str]
    sizes: Sequence[int]

    @property
    def labels(self) -> list[str]:
        """Names of the sets of questions that the changed systems are asked."""
        return ["people", *(f"{name} {rows}" for name in self.sets for rows in self.sizes)]


def run(name: str, data: Path, out: Path, extent: Extent) -> None:
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    part = part_of(load_local(data / name), questions=extent.people, passages=extent.passages)
    if not (folder / "index.kraq" / "manifest.json").exists():
        build_index(list(part.documents), folder / "index.kraq")
    people = [(each.question, frozenset(each.supporting_ids)) for each in part.examples]
    make_questions(folder, people, extent.sets, extent.sizes)

    with Workspace.open(folder / "index.kraq") as space:
        documents = tuple(space.index.all(Document))
    encoder = KeptVectors(load_embedder(EncoderSettings()), folder / "vectors")

    def ask(planted: Planted, strength: Any, questions: Sequence[str]) -> list[list[str]]:
        setup = planted.change(strength)(Setup(documents, planted.retriever))
        found = found_by(setup, questions, encoder)
        encoder.save()
        return found

    answers = Answers(folder, ask)
    n_questions = {label: len(answers.questions[label]) for label in extent.labels if answers.questions[label]}
    print(name, len(documents), "passages,", n_questions, flush=True)

    for planted, strength in answers.choices():
        if strength is not None:
            for label in n_questions:
                answers.outcome(planted, strength, label)


def report(names: Sequence[str], out: Path) -> None:
    """Markdown tables on standard output."""
    for name in names:
        answers = Answers(out / name)
        faults, harmless = answers.chosen()
        print(f"\n{name}: {len(faults)} of {len(FAULTS)} faults and {len(harmless)} of {len(HARMLESS)} harmless count.")
        _print_power(answers, faults, harmless)
        _print_by_cost(answers, faults)
        _print_changes(answers, "fault", FAULTS, faults)
        _print_changes(answers, "harmless", HARMLESS, harmless)


def _print_power(answers: Answers, faults: Mapping[Planted, Any], harmless: Mapping[Planted, Any]) -> None:
    print("\n| questions | rows | faults caught | false alarms |\n|---|---|---|---|")
    for label in answers.asked:
        size = len(answers.questions[label])
        for rows in (*(rows for rows in ROWS if rows < size), size):
            caught, alarms = (_caught(answers, each, label, rows) for each in (faults, harmless))
            cells = f"{len(caught)} of {len(faults)}", f"{len(alarms)} of {len(harmless)}"
            print(f"| {label} | {rows} | {' | '.join(cells)} |")


def _print_by_cost(answers: Answers, faults: Mapping[Planted, Any]) -> None:
    print(f"\n| cost to people | faults | {' | '.join(answers.asked)} |\n|---|---{'|---' * len(answers.asked)}|")
    costs = {
        planted: -answers.outcome(planted, strength, "people").difference().estimate
        for planted, strength in faults.items()
    }
    for least, most in pairwise((0.01, 0.025, 0.05, COSTS[1])):
        below = most if most < COSTS[1] else float("inf")
        of_cost = {planted: faults[planted] for planted, cost in costs.items() if least <= cost < below}
        caught = (str(len(_caught(answers, of_cost, label, None))) for label in answers.asked)
        print(f"| {100 * least:g} to {100 * most:g} points | {len(of_cost)} | {' | '.join(caught)} |")


def _print_changes(answers: Answers, what: str, changes: Sequence[Planted], chosen: Mapping[Planted, Any]) -> None:
    """What each change costs each set of questions, in the strength that was chosen."""
    print(f"\n| {what} | strength | {' | '.join(answers.asked)} |\n|---|---{'|---' * len(answers.asked)}|")
    for planted in changes:
        if planted not in chosen:
            empty = " |" * len(answers.asked)
            print(f"| ({planted.name}) | none of {', '.join(map(str, planted.strengths))} |{empty}")
            continue
        strength = chosen[planted]
        cells = (_points(answers.outcome(planted, strength, label)) for label in answers.asked)
        print(f"| {planted.name} | {strength} | {' | '.join(cells)} |")


def _caught(answers: Answers, changes: Mapping[Planted, Any], label: str, rows: int | None) -> list[Planted]:
    return [
        planted for planted, strength in changes.items() if is_caught(answers.outcome(planted, strength, label), rows)
    ]


def _points(outcome: Outcome) -> str:
    """The difference in points of recall, in bold if the gate takes it for a loss."""
    text = f"{100 * outcome.difference().estimate:+.1f}"
    return f"**{text}**" if is_caught(outcome, None) else text


def seconds(name: str, out: Path) -> None:
    """What a run of the gate takes as a command of its own."""
    folder = out / name
    command = [sys.executable, "-m", "kraq_dspy", "eval", str(folder / "index.kraq"), str(folder / "made-200.jsonl"),
               "--retrieval-only", "--fail-under", "recall@10=.1"]  # fmt: skip
    with tempfile.TemporaryDirectory() as runs:
        base = Path(runs) / "base"
        for place, extra in ((base, []), (Path(runs) / "now", ["--fail-if-worse", str(base)])):
            started, before = time.perf_counter(), getrusage(RUSAGE_CHILDREN)
            subprocess.run([*command, "--out", str(place), *extra], check=True, stdout=subprocess.DEVNULL)
            after = getrusage(RUSAGE_CHILDREN)
            computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"{name}, {place.name}: {time.perf_counter() - started:.1f} s, {computed:.1f} CPU s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "seconds", "report"))
    parser.add_argument("corpora", nargs="+", metavar="NAME")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("runs/gate"))
    parser.add_argument("--sets", nargs="+", choices=SHARES_OF, default=["made"], help="Test sets that are made.")
    parser.add_argument("--rows", type=int, nargs="+", default=[200], help="Sizes of the made sets.")
    parser.add_argument("--people", type=int, default=PEOPLE, help="Questions of people, at most.")
    parser.add_argument("--passages", type=int, default=PASSAGES, help="Passages, at most.")
    arguments = parser.parse_args()
    if arguments.command == "report":
        report(arguments.corpora, arguments.out)
        return
    for name in arguments.corpora:
        if arguments.command == "run":
            extent = Extent(arguments.people, arguments.passages, arguments.sets, arguments.rows)
            run(name, arguments.data, arguments.out, extent)
        else:
            seconds(name, arguments.out)


if __name__ == "__main__":
    main()
