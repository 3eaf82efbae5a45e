"""Memory of indexing 15,000 chunks, and how soon `kraq ask` answers on such an index from the start of its process.

    python benchmarks/memory.py [--data ../shared/data] [--chunks 15000] [--out big.kraq] [--json]
    python benchmarks/memory.py --synthetic [--chunks 100000]

Passages of hotpotqa, musique and wiki_distractors, the embedded model. The peak of the whole process is given beside
that of a process that only loads the encoder and embeds some; the difference is to be under 1.5 GB.

With --synthetic, sentences are made up about 30,000 people and 3,000 places, and vectors are made by hashing: no
encoder is in memory, so the peak of the process is what lies beside it, to be under 2 GB at 100,000 chunks. Then, each
in a process of its own, the index is asked by several retrievers, and one document is added to it.
"""

import argparse
import gzip
import itertools
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from stand_in import machine

from kraq_dspy.ports import SilentProgress, Vectors
from kraq_dspy.records import Document

SETS = ("hotpotqa", "wiki_distractors", "musique")
QUESTION = "Which magazine was started first, Arthur's Magazine or First for Women?"


def passages(data: Path) -> Iterator[Document]:
    texts = set()
    for name in SETS:
        with gzip.open(data / name / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                if row["text"] not in texts:
                    texts.add(row["text"])
                    yield Document(f"{name}/{row['id']}", row["title"], row["text"])


def made_up(chunks: int) -> Iterator[Document]:
    """Names come up as often as names do: the n-th of them about 1/n times as often as the first."""
    chance = random.Random(0)
    syllables = [a + b for a in ("ba", "do", "ki", "lu", "me", "no", "ra", "su", "ti", "va") for b in "lmnrstvxyz"]
    people = [f"{first.title()}a {last.title()}ov" for first in syllables for last in syllables * 3][:30_000]
    people = [f"{name}{'aeiou'[number % 5]}k" for number, name in enumerate(people)]
    places = [f"{first.title()}{last}burg" for first in syllables for last in syllables[:30]]
    often = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(people))))
    verbs = ("met", "wrote to", "worked with", "was the teacher of", "built a mill for", "sold a ship to")
    for number in range(chunks):
        who = chance.choices(people, cum_weights=often, k=5)
        where = chance.choices(places, k=3)
        sentences = [
            f"{a} {chance.choice(verbs)} {b} in {place}." for a, b, place in zip(who, who[1:], where, strict=False)
        ]
        yield Document(
            f"d{number:06}", f"Report {number}", " ".join([*sentences, f"This was in {1500 + number % 500}."])
        )


class Hashing:
    """Vectors by chance, the same for the same text; unit length."""

    name, dimension = "hashing", 384

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        rows = np.stack([np.random.default_rng(zlib.crc32(text.encode())).standard_normal(384) for text in texts])
        unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self.encode_queries(texts)


def index_made_up(chunks: int, out: Path) -> None:
    from kraq_dspy.indexing.build import build_index

    start = time.monotonic()
    by_stage: dict[str, float] = {}
    report = build_index(made_up(chunks), out, embedder=Hashing(), progress=Peaks(by_stage))
    figures = {"peak_mb": peak_mb(), "wall_s": time.monotonic() - start, "counts": report.counts}
    print(json.dumps({**figures, "peak_mb_after_stage": by_stage}))


def ask_made_up(out: Path) -> None:
    from kraq_dspy.workspace import Workspace

    by_retriever: dict[str, float] = {}
    with Workspace.open(out, embedder=Hashing()) as space:
        for name in ("dense", "hybrid", "combined", "bridge", "pagerank"):
            space.retriever(name)("Who was the teacher of Bala Dokov?", 15)
            by_retriever[name] = round(peak_mb())
    print(json.dumps({"peak_mb_after_retriever": by_retriever}))


def add_made_up(out: Path) -> None:
    from kraq_dspy.indexing.change import add_documents

    by_stage: dict[str, float] = {}
    start = time.monotonic()
    one = Document("new", "Report", "Bala Dokov met Luvi Sarov in Norburg. Bala Dokov wrote to Meri Sunov in Tarburg.")
    report = add_documents(out, [one], embedder=Hashing(), progress=Peaks(by_stage))
    figures = {"peak_mb": peak_mb(), "wall_s": time.monotonic() - start, "counts": report.counts}
    print(json.dumps({**figures, "peak_mb_after_stage": by_stage}))


class Peaks(SilentProgress):
    """Notes the peak so far at the end of each stage."""

    def __init__(self, peaks: dict[str, float]) -> None:
        self.peaks = peaks

    def finish(self, stage: str) -> None:
        self.peaks[stage] = round(peak_mb())


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def index_here(data: Path, chunks: int, out: Path) -> None:
    from kraq_dspy.indexing.build import build_index

    start = time.monotonic()
    report = build_index(itertools.islice(passages(data), chunks), out)
    print(json.dumps({"peak_mb": peak_mb(), "wall_s": time.monotonic() - start, "counts": report.counts}))


def encode_here(data: Path) -> None:
    from kraq_dspy.config import EncoderSettings
    from kraq_dspy.embedders import load_embedder

    texts = [document.text for document in itertools.islice(passages(data), 512)]
    load_embedder(EncoderSettings()).encode_passages(texts)
    print(json.dumps({"peak_mb": peak_mb()}))


def in_a_process(*arguments: str) -> dict[str, object]:
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure_made_up(chunks: int, out: Path | None, *, as_json: bool) -> None:
    """A tenth of the chunks, then all of them: what of the peak grows with the corpus shows."""
    results: dict[str, object] = {"machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        for size in (chunks // 10, chunks):
            place = (out if size == chunks else None) or Path(folder) / f"{size}.kraq"
            results[f"{size} chunks"] = in_a_process("--step", "synthetic", "--chunks", str(size), "--out", str(place))
        results["asking"] = in_a_process("--step", "ask", "--out", str(place))
        results["adding a document"] = in_a_process("--step", "add", "--out", str(place))
    print(json.dumps(results, indent=2 if as_json else None))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--chunks", type=int, help="15,000; 100,000 with --synthetic")
    parser.add_argument("--out", type=Path, help="keep the index here")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--synthetic", action="store_true", help="made-up text, no encoder")
    parser.add_argument("--step", choices=("index", "encode", "synthetic", "ask", "add"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.chunks = options.chunks or (100_000 if options.synthetic else 15_000)
    if options.step == "synthetic":
        index_made_up(options.chunks, options.out)
        return
    if options.step in ("ask", "add"):
        {"ask": ask_made_up, "add": add_made_up}[options.step](options.out)
        return
    if options.synthetic:
        measure_made_up(options.chunks, options.out, as_json=options.json)
        return
    if options.step == "index":
        index_here(options.data, options.chunks, options.out)
        return
    if options.step == "encode":
        encode_here(options.data)
        return
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or Path(folder) / "big.kraq"
        shared = ("--data", str(options.data))
        encoder = in_a_process("--step", "encode", *shared)
        indexing = in_a_process("--step", "index", *shared, "--chunks", str(options.chunks), "--out", str(out))
        seconds = []
        for program in ("traditional", "combined", "combined"):
            start = time.monotonic()
            command = [sys.executable, "-m", "kraq_dspy.cli", "ask", str(out), QUESTION, "--program", program, "--json"]
            subprocess.run(command, check=True, capture_output=True)
            seconds.append(round(time.monotonic() - start, 2))
    results = {
        "machine": machine(),
        "encoder_alone": encoder,
        "indexing": indexing,
        "beside_encoder_mb": float(str(indexing["peak_mb"])) - float(str(encoder["peak_mb"])),
        "ask_s": seconds,
    }
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{results['machine']}; {indexing['counts']}")
    print(f"peak {indexing['peak_mb']:.0f} MB, encoder alone {encoder['peak_mb']:.0f} MB, {indexing['wall_s']:.0f} s")
    print(f"beside the encoder {results['beside_encoder_mb']:.0f} MB (under 1500); kraq ask {seconds} s (under 5)")


if __name__ == "__main__":
    main()
