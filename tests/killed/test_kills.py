"""Kills (-9) processes at fifty random moments of building, pre-computing, adding, removing and re-indexing.

`make test-kill` runs it: some minutes. The stand-in server counts every call, so "paid twice" is what it was asked.
"""

import dataclasses
import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from stand_in import StandIn, stand_in

from kraq_dspy import Index
from kraq_dspy.asset.store.instructed import INSTRUCTED
from kraq_dspy.asset.store.states import DRAFT, STATES, VECTORS
from kraq_dspy.indexing.prepare.raptor import FILE as TREE
from kraq_dspy.indexing.prepare.summarised import FOLDER as SUMMARISED
from kraq_dspy.records import Chunk, Extraction
from kraq_dspy.settings import CommunitySettings, EncoderSettings, ResolveSettings, RoleSettings, RunSettings, Settings
from tests.asset.store.indexes import current_home
from tests.indexing.small import KINDS

KILLS = 50
KILLS_A_STEP = 5
CONCURRENCY = 4
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hotpotqa-mini" / "corpus.jsonl"


@dataclass(frozen=True)
class Step:
    name: str
    do: str
    corpus: str = ""


STEPS = (
    Step("build", "build", "first"),
    Step("precompute", "precompute"),
    Step("pairs of questions and answers", "pairs"),
    Step("tree of summaries", "tree"),
    Step("summarised corpus", "k2rag"),
    Step("add", "add", "added"),
    Step("remove", "remove", "removed"),
    Step("re-index a corpus that gained, lost and changed", "build", "second"),
    Step("precompute again", "precompute"),
    Step("pairs again", "pairs"),
    Step("tree again", "tree"),
    Step("summarised corpus again", "k2rag"),
)
ASKING = tuple(step.name for step in STEPS if step.do not in ("precompute", "remove"))  # a removal may need no call


@dataclass
class Worker:
    """The process that forks a child for each step."""

    process: "subprocess.Popen[str]"
    folder: Path

    def start(self, step: Step, out: Path) -> int:
        job = {"do": step.do, "out": str(out), "documents": str(self.folder / f"{step.corpus}.json")}
        job["settings"] = str(self.folder / "settings.json")
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return int(self._line())

    def status(self) -> int:
        """Waits for the child to end."""
        return int(self._line())

    def run(self, step: Step, out: Path) -> float:
        """Undisturbed; the seconds that it took."""
        start = time.monotonic()
        self.start(step, out)
        assert self.status() == 0
        return time.monotonic() - start

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


@dataclass
class Tally:
    kills: int = 0
    moments: dict[str, int] = field(default_factory=dict)
    answered: int = 0  # by the server
    kept: int = 0  # answers in the ledgers of the indexes
    expected: int = 0  # answers in the ledgers of indexes that nobody disturbed


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    script = Path(__file__).with_name("worker.py")
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    yield Worker(process, tmp_path)
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=60)


def prepare(folder: Path, url: str) -> None:
    with EXAMPLE.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(14), strict=False)]
    first = [{"id": row["id"], "title": row["title"], "text": row["text"]} for row in rows[:12]]
    second = [*first[2:11], {**first[11], "text": "A changed text about Arthur's Magazine and Boston."}]
    second += [{"id": row["id"], "title": row["title"], "text": row["text"]} for row in rows[12:]]
    settings = Settings(
        communities=CommunitySettings(max_size=8),
        resolve=ResolveSettings(description_tokens=60),
        encoder=EncoderSettings(name="stand-in", api_base=url),
        run=RunSettings(concurrency=CONCURRENCY),
        roles={"default": RoleSettings(model="hosted_vllm/stand-in", api_base=url, structured="none", timeout_s=30)},
    )
    added = second[-2:]
    files = {"first": first, "second": second, "added": added, "removed": first[3:5], "settings": settings.to_dict()}
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))


def state(path: Path) -> dict[str, Any]:
    """Everything that an index says, but for times, places and costs."""
    with Index.open(path) as index:
        records: dict[str, Any] = {kind.__name__: sorted(map(repr, index.all(kind))) for kind in KINDS}
        for name in sorted(file.name for file in (index.home / VECTORS).iterdir()):
            store = index.vectors_named(name)
            ids = sorted(store.ids())
            records[f"{name} vectors"] = dict(zip(ids, store.vectors(ids).tolist(), strict=True))
        records["failures"] = index.results.failures()
        records["complete"] = index.manifest.complete
        if (index.home / TREE).exists():
            records[TREE] = json.loads((index.home / TREE).read_text("utf-8"))
        records["states"] = len(list((path / STATES).iterdir()))
        records["parts"] = sorted(child.name for child in index.home.iterdir())
    constant = f"{(current_home(path) / 'index.db').as_uri()}?immutable=1"
    with closing(sqlite3.connect(constant, uri=True)) as connection:
        for table, columns in (("results", "stage, item_id, output"), ("journal", "stage, item_id, request")):
            records[table] = sorted(connection.execute(f"SELECT {columns} FROM {table}").fetchall())
    instructed = path / INSTRUCTED
    if instructed.exists():
        with sqlite3.connect(instructed) as connection:
            records["instructed"] = sorted(connection.execute("SELECT owner, parts, vectors FROM rows").fetchall())
    if (path / SUMMARISED).exists():
        records[SUMMARISED] = state(path / SUMMARISED)
    records["files"] = sorted(child.name for child in path.iterdir() if not child.name.endswith(("-wal", "-shm")))
    return records


def require_whole(path: Path) -> None:
    """Nothing is half written: whatever is there can be read, in every file, in the middle of a build too."""
    if not (path / "manifest.json").exists():  # killed before there was an index
        return
    json.loads((path / "manifest.json").read_text("utf-8"))
    for database in [*path.glob("*/index.db"), *path.glob("*/*/index.db"), path / INSTRUCTED]:
        if database.exists():
            constant = "?immutable=1" if database.parent.parent.name == STATES else ""
            with closing(sqlite3.connect(f"{database.as_uri()}{constant}", uri=True)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    for unfinished in (False, True):
        with Index.open(path, unfinished=unfinished) as index:
            for kind in KINDS:
                list(index.all(kind))
            known = set(index.ids(Chunk))
            vectors = index.chunk_vectors.ids()
            assert set(index.ids(Extraction)) <= known
            if index.home != path / DRAFT:
                assert index.manifest.complete
                assert vectors == known, "a state that readers see is not whole"
            if (index.home / TREE).exists():
                json.loads((index.home / TREE).read_text("utf-8"))
    if (path / SUMMARISED).exists():
        require_whole(path / SUMMARISED)


def kept_answers(path: Path) -> int:
    """In the ledgers of the index and of the summarised corpus in it."""
    if not (path / "manifest.json").exists():
        return 0
    with Index.open(path, unfinished=True) as index:
        own = sum(usage.calls for usage in index.results.usage().values())
    return own + kept_answers(path / SUMMARISED)


def answered(server: StandIn) -> int:
    """Calls that the server took, once none is under way."""
    requests, times_the_same = -1, 0
    while times_the_same < 3:  # on a busy machine one call may take longer to arrive than a look
        now = server.stats()["requests"]
        times_the_same = times_the_same + 1 if now == requests else 0
        requests = now
        time.sleep(0.1)
    return requests


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs fork and kill -9")
def test_fifty_kills_change_nothing_and_no_answer_that_was_kept_is_paid_for_again(
    tmp_path: Path, worker: Worker
) -> None:
    chance = random.Random(2026)
    tally = Tally()
    with stand_in(latency_ms=25) as server:
        prepare(tmp_path, server.url)
        expected: list[dict[str, Any]] = []
        seconds, calls = [], []
        for step in STEPS:
            seconds.append(worker.run(step, tmp_path / "whole.kraq"))
            expected.append(state(tmp_path / "whole.kraq"))
            calls.append(kept_answers(tmp_path / "whole.kraq"))
        assert answered(server) == calls[-1]
        calls_by_step = dict(zip((step.name for step in STEPS), calls, strict=True))
        assert all(later > sooner for sooner, later in itertools.pairwise(calls_by_step[name] for name in ASKING))
        round_number = 0
        while tally.kills < KILLS:
            round_number += 1
            out = tmp_path / f"killed-{round_number}.kraq"
            server.reset()
            lost = 0
            for number, step in enumerate(STEPS):
                for _ in range(KILLS_A_STEP):
                    if tally.kills == KILLS:
                        break
                    child = worker.start(step, out)
                    time.sleep(chance.uniform(0, 1.2) * seconds[number])
                    with suppress(ProcessLookupError):  # it was done before
                        os.kill(child, signal.SIGKILL)
                    if worker.status() != signal.SIGKILL:
                        seconds[number] *= 0.6  # it was done too soon: the machine was busier at first
                        break
                    tally.kills += 1
                    tally.moments[step.name] = tally.moments.get(step.name, 0) + 1
                    time.sleep(0.3)  # the server answers what was in flight, though nobody listens any more
                    missing = answered(server) - kept_answers(out)
                    assert missing - lost <= CONCURRENCY, f"{step.name}: more calls than were in flight are not kept"
                    lost = missing
                    require_whole(out)
                worker.run(step, out)
                assert state(out) == expected[number], step.name
                assert kept_answers(out) == calls[number], f"{step.name}: an answer that was kept was asked for again"
                assert answered(server) - kept_answers(out) == lost, (
                    f"{step.name}: a call that was not lost is not kept"
                )
            tally.answered += answered(server)
            tally.kept += kept_answers(out)
            tally.expected += calls[-1]
    print(f"\n{dataclasses.asdict(tally)}, paid twice: {tally.kept - tally.expected}, rounds: {round_number}")
    assert tally.kills == KILLS
    assert tally.kept == tally.expected
