"""Memory and time of `kraq export --format parquet` at 100,000 chunks.

    python benchmarks/export_memory.py [--chunks 100000] [--index big.kraq] [--json]

The index is made up: records of the number and size that 100,000 chunks of benchmarks/memory.py --synthetic gave
(113,000 entities, 831,000 relationships, as many claims as chunks, 103,000 communities), written straight into the
tables, since neither models nor vectors matter here. The export runs in a process of its own; its peak is given beside
that of a process that has only opened the index and imported pyarrow.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from stand_in import machine

from kraq_dspy.config import Settings
from kraq_dspy.records import (
    Chunk,
    Claim,
    Community,
    Document,
    Entity,
    Finding,
    Question,
    Relationship,
    Summary,
    content_id,
)
from kraq_dspy.stores.index import Index
from kraq_dspy.stores.tables import Record

WORDS = [a + b for a in ("ba", "do", "ki", "lu", "me", "no", "ra", "su", "ti", "va") for b in ("la", "mo", "ni", "ra")]


def records(chunks: int) -> Iterator[Record]:
    """Kinds in the ratios of the index that is imitated; every entity stands in some chunks, every link in one."""
    chance = random.Random(0)

    def text(words: int) -> str:
        return " ".join(chance.choices(WORDS, k=words))

    def ids(kind: str, count: float) -> list[str]:
        return [content_id(kind, str(number)) for number in range(round(count * chunks))]

    chunk_ids, entity_ids = ids("chunk", 1), ids("entity", 1.13)
    community_ids, link_ids = ids("community", 1.03), ids("link", 8.31)
    for number, chunk_id in enumerate(chunk_ids):
        body = text(60)
        yield Document(f"d{number:06}", f"Report {number}", body)
        yield Chunk(chunk_id, f"d{number:06}", 0, 0, len(body), body, 80, f"Report {number}")
    for entity_id in entity_ids:
        name = text(2).title()
        yield Entity(entity_id, name, "person", text(15), (name,), tuple(chance.choices(chunk_ids, k=4)), 15)
    for link_id in link_ids:
        source, target = chance.choices(entity_ids, k=2)
        yield Relationship(link_id, source, target, "met", text(8), 1.0, (chance.choice(chunk_ids),))
    for chunk_id in chunk_ids:
        yield Claim(content_id("claim", chunk_id), chance.choice(entity_ids), text(8), chunk_id)
    for number, community_id in enumerate(community_ids):
        yield Community(
            community_id, min(3, number // 50), None, (), tuple(chance.choices(entity_ids, k=3)),
            tuple(chance.choices(link_ids, k=4)), tuple(chance.choices(chunk_ids, k=4)),
        )  # fmt: skip
    for community_id in community_ids[: chunks // 30]:
        findings = (Finding(text(8), text(30)), Finding(text(8), text(30)))
        yield Summary(community_id, text(4), text(80), findings)
        chunk_id = chance.choice(chunk_ids)
        yield Question(content_id("q", community_id), text(12), "kraq", community_id, 0, (chunk_id,), ("d000000",))


def make(chunks: int, out: Path) -> None:
    with Index.create(out, Settings(), encoder_name="none", encoder_dimension=2) as index:
        index.add(records(chunks))
        index.update_manifest(complete=True)


def peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def step(name: str, index: Path) -> None:
    import pyarrow.parquet  # noqa: F401 (what an empty export brings, too)

    from kraq_dspy.indexing.export import export_index

    with Index.open(index) as opened:
        opened.counts()
    start = time.monotonic()
    size = 0
    if name == "export":
        with tempfile.TemporaryDirectory() as folder:
            size = sum(path.stat().st_size for path in export_index(index, folder, "parquet"))
    print(json.dumps({"peak_mb": peak_mb(), "wall_s": round(time.monotonic() - start, 1), "mb_written": size // 10**6}))


def in_a_process(name: str, index: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--step", name, "--index", str(index)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--index", type=Path, help="made here and kept; taken as it is where it exists")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--step", choices=("open", "export"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step(options.step, options.index)
        return
    with tempfile.TemporaryDirectory() as folder:
        index = options.index or Path(folder) / "big.kraq"
        if not index.exists():
            make(options.chunks, index)
        results = {name: in_a_process(name, index) for name in ("open", "export")}
    results_of = {"machine": machine(), "chunks": options.chunks, **results}
    print(json.dumps(results_of, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
