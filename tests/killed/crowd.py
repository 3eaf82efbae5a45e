"""Has eight processes read an index while one writes it; all of them are killed now and then.

`python crowd.py FOLDER SECONDS SEED [URL]`, with vectors in the folder or on a Qdrant server. Each state carries
a mark: in the manifest, in the text of every chunk, in every vector and word; whoever sees two marks at once has seen a
mixed state. The last line printed is JSON: what was seen.

On a busy machine seconds prove nothing, so it goes on beyond them until states were written, several of them were read,
and readers and writers were killed. A writer whose predecessors were all killed before they were done is left alone
until it has written a state; else a slow machine would write none.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kraq_dspy import Index
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Chunk, content_id
from kraq_dspy.settings import Settings, StoreSettings

READERS, CHUNKS = 8, 120
KILLS_IN_A_ROW = 3  # of writers that had written nothing yet
LONGEST_S = 600  # what has not happened by then never will
SHARED = len(sys.argv) > 4  # ids of one server's points are those of all states, so they change with the text


def ids_of(mark: int) -> list[str]:
    return [content_id(f"{mark if SHARED else ''}-{number}") for number in range(CHUNKS)]


def mark_of(index: Index) -> int:
    return int(index.manifest.models["mark"])


def vector_of(mark: int) -> Vectors:
    angle = np.float32(mark % 1000) / 1000
    return np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)


def write_state(index: Index, mark: int) -> None:
    """In parts, so that a kill may come between any two of them."""
    index.update_manifest(complete=False)
    ids = ids_of(mark)
    index.delete(Chunk, set(index.ids(Chunk)) - set(ids))
    index.chunk_vectors.delete(index.chunk_vectors.ids() - set(ids))
    for start in range(0, CHUNKS, 40):
        some = ids[start : start + 40]
        texts = [f"mark{mark} text" for _ in some]
        index.add(Chunk(one, "d", 0, 0, 1, text, 1) for one, text in zip(some, texts, strict=True))
        index.chunk_vectors.upsert(some, np.tile(vector_of(mark), (len(some), 1)), texts)
        if start == 40:
            index.chunk_vectors.search(vector_of(mark)[None], 3)  # what it writes becomes searchable on the way
    index.update_manifest(complete=True, models={"mark": str(mark)})


def require_one_state(index: Index) -> int:
    mark = mark_of(index)
    assert {chunk.text for chunk in index.all(Chunk)} == {f"mark{mark} text"}, "texts of another state"
    assert index.count(Chunk) == CHUNKS
    store = index.chunk_vectors
    assert store.ids() == set(ids_of(mark)), "vectors of other chunks"
    np.testing.assert_allclose(store.vectors(ids_of(mark)), np.tile(vector_of(mark), (CHUNKS, 1)), atol=1e-6)
    assert len(store.search_text(f"mark{mark}", CHUNKS)) == CHUNKS, "words of another state"
    assert abs(store.search(vector_of(mark)[None], 1)[0][0][1] - 1) < 1e-5
    return mark


def read(folder: Path, chance: random.Random, report: int) -> None:
    last = 0
    while True:
        start = time.monotonic()
        with Index.open(folder) as index:
            waited = time.monotonic() - start
            mark = require_one_state(index)
            assert mark >= last, "an older state after a newer one"
            if chance.random() < 0.1:
                side = index.vectors_named("side")
                side.upsert([content_id(f"{mark}")], vector_of(mark)[None])
                assert side.count() >= 1
            if chance.random() < 0.5:
                time.sleep(chance.uniform(0, 0.3))
                assert require_one_state(index) == mark, "the state changed under its reader"
        last = mark
        os.write(report, f"{mark} {waited}\n".encode())


def write(folder: Path, chance: random.Random, report: int) -> None:
    while True:
        with Index.open(folder, write=True) as index:
            write_state(index, mark_of(index) + 1)
        os.write(report, b"w\n")
        time.sleep(chance.uniform(0, 0.05))


def start(work: Callable[[Path, random.Random, int], None], folder: Path, seed: int, report: int) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(folder, random.Random(seed), report)
    except BaseException:  # noqa: BLE001 (the parent counts it)
        os.write(2, traceback.format_exc().encode())
    os._exit(code)


class Crowd:
    """The processes, and what they reported."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.failures = 0
        self.kills = Counter[str]()
        self._incoming, self._report = os.pipe()
        os.set_blocking(self._incoming, False)
        self._lines: list[str] = []
        self._tail = b""
        self._killed_in_vain = 0  # writers in a row
        self._children: dict[int, Callable[[Path, random.Random, int], None]] = {}
        for work in (write, *[read] * READERS):
            self._start(work)

    def kill_one(self) -> None:
        """Kill the writer or anybody, and start another one in its place."""
        anybody = self.chance.choice(list(self._children))
        writer = next(child for child, work in self._children.items() if work is write)
        victim = anybody if self.chance.random() < 0.5 else writer
        if victim == writer and self._killed_in_vain >= KILLS_IN_A_ROW:
            return

        work = self._children.pop(victim)
        self._kill(victim)
        self.kills[work.__name__] += 1
        self._killed_in_vain += work is write
        self._start(work)

    def hear(self) -> None:
        """Take in what the processes reported since."""
        before = self.written()
        while chunk := _read(self._incoming):
            self._tail += chunk
        *whole, self._tail = self._tail.split(b"\n")
        self._lines += [line.decode() for line in whole]
        if self.written() > before:
            self._killed_in_vain = 0

    def has_met(self) -> bool:
        """Whether what is to be proved could have failed: states came and were read between kills of both kinds."""
        return self.written() > 1 and len(self.marks_read()) > 1 and len(self.kills) == 2

    def written(self) -> int:
        return self._lines.count("w")

    def looks(self) -> list[list[str]]:
        """The mark that each reader saw, and how long it waited for it."""
        return [line.split() for line in self._lines if " " in line]

    def marks_read(self) -> set[str]:
        return {mark for mark, _ in self.looks()}

    def end(self) -> None:
        for child in self._children:
            self._kill(child)
        self.hear()

    def _start(self, work: Callable[[Path, random.Random, int], None]) -> None:
        self._children[start(work, self.folder, self.chance.getrandbits(32), self._report)] = work

    def _kill(self, child: int) -> None:
        os.kill(child, signal.SIGKILL)
        self.failures += os.waitpid(child, 0)[1] != signal.SIGKILL  # it had ended by itself, so with an error


def main() -> None:
    folder, seconds, seed = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    settings = Settings(store=StoreSettings(url=sys.argv[4] if SHARED else None))
    with Index.create(folder, settings, encoder_name="marks", encoder_dimension=2) as index:
        write_state(index, 1)
    chance = random.Random(seed)
    crowd = Crowd(folder, chance)
    begun = time.monotonic()
    while time.monotonic() - begun < (seconds if crowd.has_met() else LONGEST_S):
        time.sleep(chance.uniform(0, 0.4))
        crowd.kill_one()
        crowd.hear()
    crowd.end()

    with Index.open(folder, write=True) as index:
        write_state(index, mark_of(index) + 1)
    with Index.open(folder) as index:
        require_one_state(index)
    looks = crowd.looks()
    states = sorted(path.name for path in (folder / "states").iterdir())
    left = sorted(path.name for path in folder.iterdir())
    print(json.dumps({
        "failures": crowd.failures, "kills": crowd.kills, "looks": len(looks), "states_seen": len(crowd.marks_read()),
        "written": crowd.written(), "longest_open_s": round(max((float(waited) for _, waited in looks), default=0), 3),
        "states_left": len(states), "left": left,
    }))  # fmt: skip


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, 1 << 16)
    except BlockingIOError:
        return b""


if __name__ == "__main__":
    main()
