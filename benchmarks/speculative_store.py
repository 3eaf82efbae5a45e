"""Times the look-up of pre-computed instructed embeddings in a large store.

    python benchmarks/speculative_store.py [--pairs 2000000] [--dimension 1024] [--top-n 100] [--json]

Random vectors in the real store (4 GB at the defaults, in the system's temporary folder or --folder); 20 passages of a
random question at a time. p99 is to be under 5 ms once the file is in memory.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from stand_in import machine

from kraq_dspy.records import content_id
from kraq_dspy.stores.instructed import InstructedRow, InstructedStore, Precision

AT_ONCE = 20  # rows of one transaction


def fill(store: InstructedStore, n_questions: int, top_n: int) -> float:
    """Seconds that writing took, the making of random vectors left out."""
    rng = np.random.default_rng(0)
    seconds = 0.0
    for start in range(0, n_questions, AT_ONCE):
        rows = [
            InstructedRow(
                content_id("question", str(number)),
                chunks_of(number, top_n),
                rng.standard_normal((top_n, store.dimension), dtype=np.float32) / np.float32(np.sqrt(store.dimension)),
            )
            for number in range(start, min(start + AT_ONCE, n_questions))
        ]
        started = time.perf_counter()
        store.add(rows)
        seconds += time.perf_counter() - started
    return seconds


def chunks_of(question: int, top_n: int) -> tuple[str, ...]:
    return tuple(content_id("chunk", str((question * 37 + i) % 15_000)) for i in range(top_n))


def look_up(store: InstructedStore, n_questions: int, top_n: int, n_lookups: int, n_rows: int) -> list[float]:
    """Milliseconds of each look-up of `n_rows` of a random question's passages."""
    rng = np.random.default_rng(1)
    taken = []
    for question in rng.integers(0, n_questions, n_lookups):
        chunk_ids = [chunks_of(int(question), top_n)[i] for i in rng.choice(top_n, n_rows, replace=False)]
        started = time.perf_counter()
        _, is_stored = store.lookup(content_id("question", str(question)), chunk_ids)
        taken.append((time.perf_counter() - started) * 1000)
        assert is_stored.all()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument("--dimension", type=int, default=1024)
    parser.add_argument("--top-n", type=int, default=100)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--lookups", type=int, default=2000)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--folder", help="where the store is made, and deleted")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    precision: Precision = "int8" if options.int8 else "float16"
    n_questions = options.pairs // options.top_n
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        store = InstructedStore.create(
            Path(folder) / "instructed.db", encoder_name="random", dimension=options.dimension, precision=precision
        )
        written = fill(store, n_questions, options.top_n)
        size = store.n_bytes
        first = look_up(store, n_questions, options.top_n, options.lookups, options.rows)
        again = look_up(store, n_questions, options.top_n, options.lookups, options.rows)
        store.close()
    results = {
        "machine": machine(),
        "pairs": options.pairs,
        "dimension": options.dimension,
        "top_n": options.top_n,
        "precision": precision,
        "gigabytes": size / 1e9,
        "pairs_written_per_second": options.pairs / written,
        **{
            f"{name}_ms": {f"p{percent}": float(np.percentile(taken, percent)) for percent in (50, 90, 99, 100)}
            for name, taken in (("after_writing", first), ("warm", again))
        },
    }
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{results['machine']}; {options.pairs:,} x {options.dimension} {precision}, {size / 1e9:.1f} GB")
    print(f"written {options.pairs / written:,.0f} pairs/s; {options.lookups} look-ups of {options.rows} rows, ms:")
    for name, taken in (("after writing", first), ("warm", again)):
        p50, p99, worst = np.percentile(taken, [50, 99, 100])
        print(f"{name:14} p50 {p50:.2f}  p99 {p99:.2f}  max {worst:.2f}")


if __name__ == "__main__":
    main()
