"""Ways for many processes to search the vectors of one index: what each costs a reader, in time, memory and disk.

`python benchmarks/readers.py [--points 15000]`. Each row has four processes that read at once. Compared with the files
of this library: Qdrant Edge with a copy of the shard for each reader, and with hard links; usearch views where
usearch is installed. Made-up vectors of 384 dimensions, 60 words a text.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kraq_dspy.ports import Vectors
from kraq_dspy.records import content_id
from kraq_dspy.stores.vectors import LocalVectorStore
from kraq_dspy.stores.vectors.points import WordWeights

DIMENSION, READERS, QUERIES = 384, 4, 50
Search = Callable[[Vectors], Any]


def made_up(n_points: int) -> tuple[list[str], Vectors, list[str]]:
    chance = random.Random(0)
    vectors = np.random.default_rng(0).normal(size=(n_points, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = [" ".join(f"w{int(chance.paretovariate(0.6)) % 50_000}" for _ in range(60)) for _ in range(n_points)]
    return [content_id(str(number)) for number in range(n_points)], vectors, texts


def build(folder: Path, n_points: int) -> dict[str, float]:
    ids, vectors, texts = made_up(n_points)
    np.save(folder / "queries.npy", vectors[:QUERIES])
    start = time.perf_counter()
    store = LocalVectorStore(folder / "mapped", DIMENSION)
    for at in range(0, n_points, 1000):
        store.upsert(ids[at : at + 1000], vectors[at : at + 1000], texts[at : at + 1000])
    store.seal()
    store.close()
    seconds = {"mapped": time.perf_counter() - start}
    start = time.perf_counter()
    make_shard(folder / "edge", ids, vectors, texts)
    seconds["edge"] = time.perf_counter() - start
    try:
        from usearch.index import Index as Graph  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return seconds
    start = time.perf_counter()
    graph = Graph(ndim=DIMENSION, metric="cos", dtype="f16")
    graph.add(np.arange(n_points), vectors)
    graph.save(str(folder / "usearch"))
    return {**seconds, "usearch": time.perf_counter() - start}


def make_shard(path: Path, ids: list[str], vectors: Vectors, texts: list[str]) -> None:
    import qdrant_edge as edge

    words = WordWeights()
    config = edge.EdgeConfig(
        vectors={"dense": edge.EdgeVectorParams(size=DIMENSION, distance=edge.Distance.Cosine)},
        sparse_vectors={"bm25": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
    )
    path.mkdir()
    shard = edge.EdgeShard.create(str(path), config)
    for at in range(0, len(ids), 1000):
        points = []
        for place in range(at, min(at + 1000, len(ids))):
            indices, values = words.of_document(texts[place]) or ([], [])
            vector = {"dense": vectors[place].tolist(), "bm25": edge.SparseVector(indices=indices, values=values)}
            points.append(edge.Point(ids[place], vector, {}))
        shard.update(edge.UpdateOperation.upsert_points(points))
    shard.flush()
    shard.close()


def open_mapped(folder: Path) -> Search:
    store = LocalVectorStore(folder / "mapped", DIMENSION, apart=lambda: folder)
    return lambda row: store.search(row[None], 10)


def open_edge(path: Path) -> Search:
    import qdrant_edge as edge

    shard = edge.EdgeShard.load(str(path))
    return lambda row: shard.query(edge.QueryRequest(limit=10, query=edge.Query.Nearest(row.tolist(), using="dense")))


def open_copied(folder: Path) -> Search:
    own = folder / f"copy-{os.getpid()}"
    shutil.copytree(folder / "edge", own)
    return open_edge(own)


def open_linked(folder: Path) -> Search:
    own = folder / f"links-{os.getpid()}"
    shutil.copytree(folder / "edge", own, copy_function=os.link)
    return open_edge(own)


def open_usearch(folder: Path) -> Search:
    from usearch.index import Index as Graph

    graph = Graph(ndim=DIMENSION, metric="cos", dtype="f16")
    graph.view(str(folder / "usearch"))
    return lambda row: graph.search(row, 10)


WAYS: dict[str, Callable[[Path], Search]] = {
    "mapped": open_mapped,
    "edge, a copy each": open_copied,
    "edge, hard links": open_linked,
    "edge, one folder": lambda folder: open_edge(folder / "edge"),
    "usearch view": open_usearch,
}


def read(way: str, folder: Path) -> None:
    """One reader: opens, waits for the others, searches, and says what it cost."""
    queries = np.load(folder / "queries.npy")
    if "edge" in way:
        import qdrant_edge  # noqa: F401 (its import is not what is measured)
    before = memory()
    start = time.perf_counter()
    try:
        search = WAYS[way](folder)
        search(queries[0])
    except Exception as error:  # noqa: BLE001 (that a way fails is its result)
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:120]}), flush=True)
        return
    first = time.perf_counter() - start
    print("open", flush=True)
    sys.stdin.readline()
    laps = []
    for row in queries:
        start = time.perf_counter()
        search(row)
        laps.append(time.perf_counter() - start)
    print(
        json.dumps({"first_ms": 1000 * first, "ms": 1000 * statistics.median(laps), "mb": memory() - before}),
        flush=True,
    )
    sys.stdin.readline()


def memory() -> float:
    """MB that are this process's own, and its share of what it maps together with others."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def size_mb(folder: Path) -> float:
    blocks = {file.stat().st_ino: file.stat().st_blocks for file in folder.rglob("*") if file.is_file()}
    return sum(blocks.values()) * 512 / 2**20


def digest(folder: Path) -> str:
    """Of all files' contents, the engine's lock and log aside."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()


def measure(way: str, folder: Path) -> dict[str, Any]:
    disk, content = size_mb(folder), digest(folder / "edge")
    command = [sys.executable, __file__, "--read", way, "--folder", str(folder)]
    readers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(READERS)
    ]
    replies = [reader.stdout.readline() for reader in readers if reader.stdout]
    errors = [json.loads(reply)["error"] for reply in replies if reply.startswith("{")]
    disk = size_mb(folder) - disk
    rows = []
    for reader, reply in zip(readers, replies, strict=True):  # one after the other: two cores
        if reply == "open\n" and reader.stdin and reader.stdout:
            reader.stdin.write("go\n")
            reader.stdin.flush()
            rows.append(json.loads(reader.stdout.readline()))
    for reader in readers:
        if reader.stdin:
            reader.stdin.close()
        reader.wait()
    for own in (*folder.glob("copy-*"), *folder.glob("links-*")):
        shutil.rmtree(own)
    row: dict[str, Any] = {"way": way, "refused": len(errors), "error": errors[0] if errors else ""}
    row["shared files changed"] = digest(folder / "edge") != content
    row["disk MB a reader"] = round(disk / READERS, 1)
    for key in rows[0] if rows else ():
        row[key] = round(statistics.median(each[key] for each in rows), 2)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=15_000)
    parser.add_argument("--read", choices=WAYS)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.read:
        read(options.read, options.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(json.dumps({"points": options.points, "build_s": build(folder, options.points)}), flush=True)
        for way in WAYS:
            if way != "usearch view" or (folder / "usearch").exists():
                print(json.dumps(measure(way, folder)), flush=True)


if __name__ == "__main__":
    main()
