"""Plants 40 faults and 40 harmless changes, and asks which of them `kraq eval --fail-if-worse` sees by made questions.

    python benchmarks/gate.py run hotpotqa squad clapnq bioasq --data DATA --out runs/gate
    python benchmarks/gate.py seconds hotpotqa --out runs/gate
    python benchmarks/gate.py report hotpotqa squad clapnq bioasq --out runs/gate

`run` indexes up to 400 passages with the evidence of up to 200 questions of people, makes test sets of 200 rows (of
200 and 400 with `--rows 200 400`) without a language model, and asks every changed system all questions. The changes
stand in `planted.py`, and were written down before the first run. What was done is kept, and the same command goes on.
`report` judges as the gate does: a run is worse where the interval of the paired difference in recall@10 lies below 0.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np
from parts import part_of
from planted import FAULTS, HARMLESS, Planted, Setup
from sklearn.cluster import KMeans

from kraq_dspy import Workspace
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.store.sync import chunk_point
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.eval.datasets import load_local
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.eval.statistics import Interval, bootstrap_difference
from kraq_dspy.eval.testset_making import TestsetPlan, make_testset
from kraq_dspy.indexing import build_index
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.ports import Embedder, Retriever, Vectors
from kraq_dspy.programs.testset import kinds
from kraq_dspy.records import Chunk, Document
from kraq_dspy.retrievers.in_memory import RecordsInMemory
from kraq_dspy.retrievers.words_and_meaning import BM25Retriever, DenseRetriever, HybridRetriever
from kraq_dspy.settings import EncoderSettings

PASSAGES, PEOPLE = 400, 200
ROWS = (50, 100, 200, 400)
"""Rows of a test set for which the gate's power is told."""
K = 10
COSTS = (0.01, 0.10)
"""Recall that a fault must cost people's questions to count."""
CHANCE = 0.01
"""Most by which people's recall may differ after a harmless change, whatever the interval says."""
BASES = ("dense", "bm25", "hybrid")
WITH_EVIDENCE = {kind: share for kind, share in kinds.SHARES.items() if kind not in kinds.WITHOUT_ANSWER}
"""Kinds of questions that have a recall."""

Asked = Sequence[tuple[str, frozenset[str]]]
"""Questions with the ids of the documents that answer them."""


class KeptVectors:
    """An encoder that encodes no text twice, in this run or in a later one."""

    def __init__(self, embedder: Embedder, file: Path) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension
        self._embedder, self._file = embedder, file
        self._rows: dict[tuple[str, str], Vectors] = {}
        self._n_saved = 0
        if file.exists():
            stored = np.load(file, allow_pickle=False)
            keys = [tuple(json.loads(key)) for key in stored["keys"]]
            self._rows = dict(zip(keys, stored["rows"], strict=True))
            self._n_saved = len(keys)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._encoded("query", texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self._encoded("passage", texts)

    def _encoded(self, side: str, texts: Sequence[str]) -> Vectors:
        unknown = [text for text in dict.fromkeys(texts) if (side, text) not in self._rows]
        if unknown:
            encode = self._embedder.encode_queries if side == "query" else self._embedder.encode_passages
            self._rows |= {(side, text): row for text, row in zip(unknown, encode(unknown), strict=True)}
        rows: Vectors = np.array([self._rows[side, text] for text in texts], np.float32)
        return rows

    def save(self) -> None:
        if len(self._rows) > self._n_saved:
            keys = np.array([json.dumps(key) for key in self._rows])
            np.savez(self._file, keys=keys, rows=np.array([*self._rows.values()], np.float32))
            self._n_saved = len(self._rows)


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
    vectors = setup.passages(encoder.encode_passages(texts))

    put = [setup.ask(question) for question in questions]
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
        means = KMeans(max(2, round(len(ids) ** 0.5)), n_init=1, random_state=0).fit(vectors)
        self._centres, self._cell_of, self._ids = means.cluster_centers_, means.labels_, np.array(ids)

    def unseen(self, question: Vectors, share: float) -> list[str]:
        nearest = np.argsort(-(self._centres @ question))
        probed = nearest[: max(1, round(share * len(nearest)))]
        ids: list[str] = self._ids[~np.isin(self._cell_of, probed)].tolist()
        return ids


def questions_of(folder: Path, people: Asked, sizes: Sequence[int]) -> dict[str, Asked]:
    """People's questions and test sets of these sizes; what was made is read again."""
    file = folder / "questions.json"
    if not file.exists():
        sets: dict[str, Asked] = {"people": people}
        with Workspace.open(folder / "index.kraq") as space:
            for rows in sizes:
                plan = TestsetPlan(rows, WITH_EVIDENCE)
                made = make_testset(space, plan=plan, draft=folder / f"made-{rows}.draft")
                made.save(folder / f"made-{rows}.jsonl")
                sets[f"made {rows}"] = [
                    (row.question, frozenset(row.supporting_ids)) for row in made if row.supporting_ids
                ]
        saved = {name: [[question, sorted(gold)] for question, gold in questions] for name, questions in sets.items()}
        file.write_text(json.dumps(saved, ensure_ascii=False), "utf-8")
    stored = json.loads(file.read_text("utf-8"))
    return {name: [(question, frozenset(gold)) for question, gold in questions] for name, questions in stored.items()}


def run(name: str, data: Path, out: Path, sizes: Sequence[int]) -> None:
    folder = out / name
    (folder / "scores").mkdir(parents=True, exist_ok=True)
    part = part_of(load_local(data / name), questions=PEOPLE, passages=PASSAGES)
    if not (folder / "index.kraq" / "manifest.json").exists():
        build_index(list(part.documents), folder / "index.kraq")
    people = [(each.question, frozenset(each.supporting_ids)) for each in part.examples]
    sets = questions_of(folder, people, sizes)
    print(
        name,
        len(part.documents),
        "passages,",
        {label: len(questions_and_gold) for label, questions_and_gold in sets.items()},
        flush=True,
    )

    with Workspace.open(folder / "index.kraq") as space:
        documents = tuple(space.index.all(Document))
    encoder = KeptVectors(load_embedder(EncoderSettings()), folder / "vectors.npz")
    bases = [Planted(f"base {base}", lambda setup: setup, base) for base in BASES]
    changes = sorted((*FAULTS, *HARMLESS), key=lambda planted: new_texts(planted, documents))
    for planted in (*bases, *changes):
        file = file_of(folder, planted)
        if file.exists():
            continue
        started = time.process_time()
        setup = planted.change(Setup(documents, planted.retriever))
        questions = [question for questions_and_gold in sets.values() for question, _ in questions_and_gold]
        rankings = iter(found_by(setup, questions, encoder))
        outcome = {
            label: [(recall_at_k(gold, documents_found, K), documents_found) for (_, gold), documents_found in
                    zip(questions_and_gold, rankings, strict=False)]
            for label, questions_and_gold in sets.items()
        }  # fmt: skip
        encoder.save()
        file.write_text(json.dumps(outcome), "utf-8")
        print(f"{name}: {planted.name}, {time.process_time() - started:.1f} CPU s", flush=True)


def new_texts(planted: Planted, documents: tuple[Document, ...]) -> int:
    """About how many texts have to be encoded for a change; what takes least is done first."""
    before = Setup(documents, planted.retriever)
    after = planted.change(before)
    if after.chunks != before.chunks or after.write != before.write:
        return len(documents)
    known = {(document.title, document.text) for document in documents}
    changed = sum((document.title, document.text) not in known for document in after.documents)
    return changed + (len(documents) // 2 if after.ask != before.ask else 0)


def file_of(folder: Path, planted: Planted) -> Path:
    words = "".join(letter if letter.isalnum() else "-" for letter in planted.name.lower())
    return folder / "scores" / f"{words}.json"


@dataclass(frozen=True)
class Outcome:
    """What a change did to a set of questions: recall by question before and after, and whether a ranking changed."""

    before: Sequence[float]
    after: Sequence[float]
    is_reordered: bool

    def difference(self, rows: int | None = None) -> Interval:
        """The gate's own interval, over the first `rows` questions."""
        return bootstrap_difference(self.after[:rows], self.before[:rows])


def outcome_of(folder: Path, planted: Planted, label: str) -> Outcome:
    base, changed = (
        json.loads(file_of(folder, each).read_text("utf-8"))[label]
        for each in (Planted(f"base {planted.retriever}", planted.change), planted)
    )
    order = list(range(len(base)))
    random.Random(0).shuffle(order)  # so that the first rows are of all kinds
    reordered = any(first[1] != second[1] for first, second in zip(base, changed, strict=True))
    return Outcome([base[place][0] for place in order], [changed[place][0] for place in order], reordered)


def is_fault(people: Interval) -> bool:
    """Whether it cost people's questions 1 to 10 points of recall."""
    return COSTS[0] <= -people.estimate <= COSTS[1]


def is_harmless(people: Outcome) -> bool:
    """Whether it altered rankings, and people's recall no more than chance does."""
    difference = people.difference()
    return people.is_reordered and difference.low <= 0 <= difference.high and abs(difference.estimate) < CHANCE


def is_caught(outcome: Outcome, rows: int | None) -> bool:
    return outcome.difference(rows).high < 0


def report(names: Sequence[str], out: Path) -> None:
    """Markdown tables on standard output, of the changes that were tried on every corpus so far."""
    tried_faults, tried_harmless = (_tried(names, out, changes) for changes in (FAULTS, HARMLESS))
    print(f"Tried: {len(tried_faults)} of {len(FAULTS)} faults, {len(tried_harmless)} of {len(HARMLESS)} harmless.\n")
    faults = {
        name: [change for change in tried_faults if is_fault(_people(out, name, change).difference())] for name in names
    }
    harmless = {
        name: [change for change in tried_harmless if is_harmless(_people(out, name, change))] for name in names
    }
    print("| corpus | faults that cost 1 to 10 points | caught by 200 made rows | harmless changes | false alarms |")
    print("|---|---|---|---|---|")
    for name in names:
        caught = _caught(out, name, faults[name], "made 200", None)
        alarms = _caught(out, name, harmless[name], "made 200", None)
        cells = len(faults[name]), len(caught), len(harmless[name]), len(alarms)
        print(f"| {name} | {' | '.join(map(str, cells))} |")

    print("\n| questions | rows | faults caught | false alarms |\n|---|---|---|---|")
    for label in ("made", "people"):
        for rows in ROWS:
            of_set = label if label == "people" else "made 400" if rows > 200 else "made 200"
            if not all(_has(out, name, of_set) for name in names):
                continue
            sizes = [len(_outcome(out, name, tried_faults[0], of_set).before) for name in names]
            if rows > max(sizes):
                continue
            n_faults, n_harmless = (sum(map(len, each.values())) for each in (faults, harmless))
            caught_by, alarms_by = (
                sum(len(_caught(out, name, each[name], of_set, rows)) for name in names) for each in (faults, harmless)
            )
            n_rows = ", ".join(str(min(rows, size)) for size in sizes)
            print(f"| {label} | {n_rows} | {caught_by} of {n_faults} | {alarms_by} of {n_harmless} |")

    print("\n| fault | " + " | ".join(f"{name}: people, made" for name in names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for planted in tried_faults:
        cells_of = (_cell(out, name, planted, planted in faults[name]) for name in names)
        print(f"| {planted.name} | {' | '.join(cells_of)} |")
    print("\nFalse alarms:")
    for name in names:
        print(f"{name}: {', '.join(_caught(out, name, harmless[name], 'made 200', None)) or 'none'}")


def _tried(names: Sequence[str], out: Path, changes: Sequence[Planted]) -> list[Planted]:
    return [change for change in changes if all(file_of(out / name, change).exists() for name in names)]


def _has(out: Path, name: str, label: str) -> bool:
    """Whether the questions of that set were asked."""
    stored: Mapping[str, object] = json.loads((out / name / "questions.json").read_text("utf-8"))
    return label in stored


def _outcome(out: Path, name: str, planted: Planted, label: str) -> Outcome:
    return outcome_of(out / name, planted, label)


def _people(out: Path, name: str, planted: Planted) -> Outcome:
    return _outcome(out, name, planted, "people")


def _caught(out: Path, name: str, planted: Iterable[Planted], label: str, rows: int | None) -> list[str]:
    return [fault.name for fault in planted if is_caught(_outcome(out, name, fault, label), rows)]


def _cell(out: Path, name: str, planted: Planted, counts: bool) -> str:
    """What people's questions lose and made rows lose, in points; in bold where it counts and was not caught."""
    people, made = _people(out, name, planted).difference(), _outcome(out, name, planted, "made 200")
    text = f"{100 * people.estimate:+.1f}, {100 * made.difference().estimate:+.1f}"
    if not counts:
        return f"({text})"
    return text if is_caught(made, None) else f"**{text}**"


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
    parser.add_argument("sets", nargs="+", metavar="NAME")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("runs/gate"))
    parser.add_argument("--rows", type=int, nargs="+", default=[200], help="Sizes of the made sets.")
    arguments = parser.parse_args()
    if arguments.command == "report":
        report(arguments.sets, arguments.out)
        return
    for name in arguments.sets:
        if arguments.command == "run":
            run(name, arguments.data, arguments.out, arguments.rows)
        else:
            seconds(name, arguments.out)


if __name__ == "__main__":
    main()
