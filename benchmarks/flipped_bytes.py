"""Damages an index in many ways and asks what `kraq check` and `kraq ask` make of it: a table of outcomes.

    python benchmarks/flipped_bytes.py [--bytes 20] [--seed 0] [--json]

An index of 40 passages with everything that may lie in it (embeddings seen from questions, a tree of summaries, a
summarised corpus, a catalogue) is copied for each attack, damaged, checked, and asked by seven programs, each in a
process of its own that is ended after a minute. Exits with 1 where damage that was served passed as whole, where a
traceback came, or where something did not end.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from kraq_dspy.apps.cli.program import make_app
from kraq_dspy.asset.store.catalogue import CATALOGUE, Catalogue, NewEntry
from kraq_dspy.asset.store.manifest import read_fields
from kraq_dspy.asset.store.own_files import write_sums
from kraq_dspy.asset.store.states import hold_state
from kraq_dspy.asset.store.tables import TABLES
from kraq_dspy.build.index.check import check_index
from kraq_dspy.workspace import Workspace

CORPUS = Path(__file__).resolve().parents[1] / "examples" / "hotpotqa-mini" / "corpus.jsonl"
QUESTION = "Who directed the film?"
ASKED = (
    ("combined", None), ("traditional", "pagerank"), ("traditional", "bm25"), ("traditional", "raptor"),
    ("qa-search", None), ("efficient", None), ("k2rag", None),
)  # fmt: skip
LIMIT_S = 60
OUTCOMES = (
    "named by check", "named by ask alone", "whole, same answers", "forged, and taken",
    "served as whole", "traceback", "no end",
)  # fmt: skip
FORGED = ("one bit, sums of files made anew", "lengths in the head of a file")
"""Where the sums were made anew nothing can tell, but that there must be no traceback and an end."""
Attack = Callable[[Path, random.Random], str]


@dataclass(frozen=True)
class Result:
    kind: str
    where: str
    outcome: str
    says: str


def current_home(path: Path) -> Path:
    lease = hold_state(path)
    lease.release()
    return lease.home


def make(path: Path) -> None:
    corpus = path.with_suffix(".jsonl")
    corpus.write_text("\n".join(CORPUS.read_text("utf-8").splitlines()[:40]), "utf-8")
    for words in (
        ("index", str(corpus), "--out", str(path)),
        ("precompute", str(path)),
        ("precompute", str(path), "--raptor"),
        ("precompute", str(path), "--k2rag"),
    ):
        result = CliRunner().invoke(make_app(), [*words, "--json"])
        if result.exit_code:
            raise SystemExit(result.output)
    with Catalogue(path / CATALOGUE) as catalogue:
        for number, question in enumerate(("Who wrote the play?", QUESTION)):
            catalogue.add(NewEntry(question, f"Answer number {number} of the catalogue."), by="benchmark")
    answers(path)  # what readers make and keep


def answers(path: Path) -> str:
    """What the index gives for the question, by every program of `ASKED`, and all of its records."""
    given: list[Any] = []
    with Workspace.open(path) as space:
        for program, retriever in ASKED:
            chosen = space.program(program, retriever)
            found = chosen(QUESTION)
            given.append([found.answer, [[hit.chunk.passage, round(hit.score, 4)] for hit in found.hits]])
        for kind in TABLES:
            records: Iterator[Any] = space.index.all(kind)
            given.append(list(map(repr, records)))
    return json.dumps(given)


def judged(path: Path, before: str) -> tuple[str, str]:
    """What becomes of a damaged index, and what is said of it."""
    outcomes, said = [], []
    for act in (check_index, answers):
        try:
            result = act(path)
            outcomes.append(result if isinstance(result, str) else ("whole" if result.whole else "named"))
            said += [] if isinstance(result, str) else [problem.what for problem in result.problems]
        except Exception as error:  # noqa: BLE001 (what comes out is what is measured)
            is_named = type(error).__module__.startswith("kraq_dspy")
            outcomes.append("named" if is_named else "traceback")
            said.append(f"{type(error).__name__}: {error}" if is_named else traceback.format_exc(limit=-3))
    checked, asked = outcomes
    if "traceback" in outcomes:
        return "traceback", "; ".join(said)
    if "named" in (checked, asked):
        return f"named by {'check' if checked == 'named' else 'ask alone'}", "; ".join(said)
    return ("whole, same answers" if asked == before else "served as whole"), "; ".join(said)


def work(orders: Connection) -> None:
    """Judges one index after the other, in a process that may be ended."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (the process ends with it)
    while True:
        orders.send(judged(*orders.recv()))


class Judge:
    """Another process, which is made anew where it does not answer."""

    def __init__(self) -> None:
        self._process: multiprocessing.process.BaseProcess | None = None

    def __call__(self, path: Path, before: str) -> tuple[str, str]:
        if self._process is None:
            self._orders, theirs = multiprocessing.Pipe()
            self._process = multiprocessing.get_context("spawn").Process(target=work, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._orders.send((path, before))
            if self._orders.poll(LIMIT_S):
                reply: tuple[str, str] = self._orders.recv()
                return reply
            outcome = "no end", ""
        except (EOFError, BrokenPipeError):
            outcome = "traceback", "the process died"
        self._process.kill()
        self._process.join()
        self._process = None
        return outcome


def files_of(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file() and file.stat().st_size)


def flip(file: Path, chance: random.Random) -> str:
    content = bytearray(file.read_bytes())
    place = chance.randrange(len(content))
    content[place] ^= 1 << chance.randrange(8)
    file.write_bytes(content)
    return f"{file.name}, byte {place} of {len(content)}"


def flipping(name: Path, *, summed: bool = True) -> Attack:
    def attack(path: Path, chance: random.Random) -> str:
        where = flip(path / name, chance)
        if not summed:
            write_sums(current_home(path))
        return where

    return attack


def changing_a_letter(table: str) -> Attack:
    """In a record, whose page stays a good one for SQLite; the sums of files are made anew."""

    def attack(path: Path, chance: random.Random) -> str:
        home = current_home(path)
        with sqlite3.connect(home / "index.db") as connection:
            rows = connection.execute(f"SELECT seq, data FROM {table}").fetchall()
            seq, data = chance.choice(rows)
            letters = [place for place, letter in enumerate(data) if letter.isalpha() and data[place - 1] not in '"\\']
            place = chance.choice(letters)
            changed = data[:place] + ("x" if data[place] != "x" else "y") + data[place + 1 :]
            connection.execute(f"UPDATE {table} SET data = ? WHERE seq = ?", (changed, seq))
        connection.close()
        write_sums(home)
        return f"{table}, letter {place} of record {seq}"

    return attack


def resizing(name: Path) -> Attack:
    def attack(path: Path, chance: random.Random) -> str:
        content = (path / name).read_bytes()
        size = chance.choice((0, 1, len(content) // 2, len(content) - 1, len(content) + 1, 2 * len(content)))
        (path / name).write_bytes((content * 2)[:size])
        return f"{name.name} of {size} bytes in place of {len(content)}"

    return attack


def lying_about_lengths(name: Path) -> Attack:
    """A number in the head of a file of arrays is another one; the sums of files are made anew."""

    def attack(path: Path, chance: random.Random) -> str:
        content = bytearray((path / name).read_bytes())
        digits = [place for place in range(min(1200, len(content))) if chr(content[place]).isdigit()]
        place = chance.choice(digits)
        content[place] = ord(chance.choice("0123456789".replace(chr(content[place]), "")))
        (path / name).write_bytes(content)
        write_sums(current_home(path))
        return f"{name.name}, digit {place}"

    return attack


def another_value(field: str, value: Any) -> Attack:
    def attack(path: Path, chance: random.Random) -> str:
        for folder in (path, current_home(path)):
            fields = read_fields(folder)
            fields[field] = value
            (folder / "manifest.json").write_text(json.dumps(fields), "utf-8")
        return f"{field} = {json.dumps(value)[:40]}"

    return attack


def losing(name: Path) -> Attack:
    def attack(path: Path, chance: random.Random) -> str:
        (path / name).unlink()
        return f"without {name}"

    return attack


def attacks(path: Path, n_bytes: int) -> Iterator[tuple[str, Attack, int]]:
    """(kind, attack, seed)."""
    names = [file.relative_to(path) for file in files_of(path) if not file.name.endswith(("-shm", "-wal"))]
    for name in names:
        for seed in range(n_bytes):
            yield "one bit of a file", flipping(name), seed
    state = current_home(path).relative_to(path)
    for name in names:
        if name.is_relative_to(state) and name.name != "sums.json":
            for seed in range(n_bytes // 2):
                yield "one bit, sums of files made anew", flipping(name, summed=False), seed
                yield "another size", resizing(name), seed
    for table in ("documents", "chunks", "entities", "relationships", "claims", "summaries", "questions"):
        for seed in range(n_bytes):
            yield "a letter of a record, sums of files made anew", changing_a_letter(table), seed
    for name in [name for name in names if "vectors" in name.parts or name.name == "passages.graph"]:
        if name.is_relative_to(state):
            for seed in range(n_bytes):
                yield "lengths in the head of a file", lying_about_lengths(name), seed
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    for field in read_fields(path):
        for seed, value in enumerate((None, -1, 1 << 70, 2.5, "../../x", "", True, [], {"a": 1}, "x" * 100_000, deep)):
            yield "another value in the manifest", another_value(field, value), seed
    for name in names:
        if name.name != CATALOGUE:  # an index without one is whole
            yield "a file is lost", losing(name), 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=20, help="bits flipped in each file")
    parser.add_argument("--only", default="", help="kinds of attacks that hold this text")
    parser.add_argument("--index", type=Path, help="keep the index here, or take the one that is there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        sound = options.index or Path(folder) / "sound.kraq"
        if not sound.exists():
            make(sound)
        judge, before = Judge(), answers(sound)
        assert check_index(sound).whole
        for kind, attack, seed in attacks(sound, options.bytes):
            if options.only in kind:
                path = Path(folder) / "x.kraq"
                shutil.rmtree(path, ignore_errors=True)
                shutil.copytree(sound, path)
                where = attack(path, random.Random(seed))
                outcome, says = judge(path, before)
                if kind in FORGED and outcome == "served as whole":
                    outcome = "forged, and taken"
                results.append(Result(kind, where, outcome, says))
                if results[-1].outcome in OUTCOMES[4:]:
                    print(json.dumps(results[-1].__dict__), file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([result.__dict__ for result in results], indent=1))
    else:
        print(f"| damage | tried | {' | '.join(OUTCOMES)} |\n|{'---|' * (len(OUTCOMES) + 2)}")
        for kind in dict.fromkeys(result.kind for result in results):
            counts = Counter(result.outcome for result in results if result.kind == kind)
            print(f"| {kind} | {counts.total()} | {' | '.join(str(counts[each]) for each in OUTCOMES)} |")
    raise SystemExit(any(result.outcome in OUTCOMES[4:] for result in results))


if __name__ == "__main__":
    main()
