"""Compares the search of very many vectors, which looks at their signs first, with the exact one: hits, time and bytes.

    python benchmarks/dense_search.py --data ../shared/data --indexes runs/indexes/*.kraq [--sizes 100000 1000000]

Vectors are those of passages and questions in these indexes, all of one encoder, each once; where a size wants more,
mixtures of two of them are added (a + 0.6 (b - mean), of unit length). Queries are people's questions of the data sets,
encoded by the same encoder. Milliseconds are of the processor: the median over the queries and, in brackets, the least.
"""

import argparse
import gzip
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stand_in import machine

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.vectors.packed import Best, Packed, write_packed
from kraq_dspy.asset.store.vectors.signs import Mask
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.ports import Vectors
from kraq_dspy.settings import EncoderSettings

BLOCK = 4096
SETS = ("hotpotqa", "musique", "popqa", "bioasq", "squad", "multihop_rag")


def indexed(paths: Sequence[Path]) -> Vectors:
    rows: dict[str, Vectors] = {}
    encoders = set()
    for path in paths:
        with Index.open(path) as index:
            encoders.add(index.manifest.encoder_name)
            for store in (index.chunk_vectors, index.question_vectors):
                ids = sorted(store.ids() - rows.keys())
                rows.update(zip(ids, store.vectors(ids), strict=True))
    if len(encoders) != 1:
        raise SystemExit(f"The indexes are of several encoders: {sorted(encoders)}.")
    return np.stack(list(rows.values()))


def asked(data: Path, n_queries: int, settings: EncoderSettings) -> Vectors:
    chance = np.random.default_rng(0)
    texts = []
    for name in SETS:
        with gzip.open(data / name / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
            questions = [json.loads(line)["question"] for line in lines]
        texts += [questions[place] for place in chance.permutation(len(questions))[: n_queries // len(SETS)]]
    return load_embedder(settings).encode_queries(texts)


def grown(real: Vectors, size: int) -> Iterator[Vectors]:
    """The real ones, or `size` of them, and mixtures of two for the rest, in an order by chance."""
    chance = np.random.default_rng(0)
    order, one, other = chance.permutation(max(size, len(real)))[:size], *chance.integers(len(real), size=(2, size))
    mean = real.mean(axis=0)
    for start in range(0, size, BLOCK):
        some = slice(start, start + BLOCK)
        mixed = real[one[some]] + 0.6 * (real[other[some]] - mean)
        mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
        places = order[some]
        yield np.where((places < len(real))[:, None], real[np.minimum(places, len(real) - 1)], mixed)


def timed(packed: Packed, queries: Vectors, k: int, mask: Mask | None) -> tuple[list[Best], str]:
    best, taken = [], []
    for query in queries:
        start = time.process_time()
        best += packed.nearest(query[None], k, mask)
        taken.append(1000 * (time.process_time() - start))
    return best, f"{statistics.median(taken):.1f} ({min(taken):.1f})"


def measure(path: Path, real: Vectors, size: int, queries: Vectors) -> Iterator[dict[str, Any]]:
    chance = np.random.default_rng(1)
    ids: NDArray[np.uint8] = chance.integers(256, size=(size, 16), dtype=np.uint8)
    ids = np.sort(ids.view("S16").ravel()).view(np.uint8).reshape(size, 16)
    none = Packed.empty(real.shape[1]).words
    start = time.process_time()
    write_packed(path, ids, grown(real, size), real.shape[1], none, none)
    seconds = time.process_time() - start
    quick, exact = Packed.open(path, real.shape[1]), Packed.open(path, real.shape[1], exact=True)
    bits = sum(part.nbytes for part in (quick.signs.half, quick.signs.rest)) if quick.signs else 0
    print(
        json.dumps(
            {"size": size, "MB": path.stat().st_size >> 20, "of these signs": bits >> 20, "s": round(seconds, 1)}
        )
    )
    masks = {"all": None, "a half allowed": chance.random(size) < 0.5, "1 % allowed": chance.random(size) < 0.01}
    for k, name in ((15, "all"), (15, "a half allowed"), (15, "1 % allowed"), (100, "all")):
        mask = masks[name]
        best, ms_exact = timed(exact, queries, k, mask)
        hits, ms = timed(quick, queries, k, mask)
        shares = [len(np.intersect1d(some[0], each[0])) / k for some, each in zip(hits, best, strict=True)]
        yield {"k": k, "of": name, "recall": round(float(np.mean(shares)), 4), "ms": ms, "exact ms": ms_exact}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--indexes", type=Path, nargs="+", required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=120)
    options = parser.parse_args()
    real = indexed(options.indexes)
    queries = asked(options.data, options.queries, EncoderSettings(threads=1, precision="fp32"))
    print(f"{machine()}; {len(real)} vectors of {real.shape[1]} dimensions, {len(queries)} queries", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            path = Path(folder) / str(size)
            for row in measure(path, real, size, queries):
                print(json.dumps(row), flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
