"""Memory of indexing 15,000 chunks, and how soon `kraq ask` answers on such an index from the start of its process.

    python benchmarks/memory.py [--data ../shared/data] [--chunks 15000] [--out big.kraq] [--json]

Passages of hotpotqa, musique and wiki_distractors, the embedded model. The peak of the whole process is given beside
that of a process that only loads the encoder and embeds some; the difference is to be under 1.5 GB.

What grows with the corpus, at 10,000 chunks and more, stage by stage: `benchmarks/scale.py`.
"""

import argparse
import gzip
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from stand_in import machine

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--chunks", type=int, default=15_000)
    parser.add_argument("--out", type=Path, help="keep the index here")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--step", choices=("index", "encode"), help=argparse.SUPPRESS)
    options = parser.parse_args()
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
            command = [sys.executable, "-m", "kraq_dspy", "ask", str(out), QUESTION, "--program", program, "--json"]
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
