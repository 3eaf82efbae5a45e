"""Compares two ways to have E(d|Q) at hand for the default encoder: from stored sentences, and as seen from q*.

    kraq demo
    OMP_NUM_THREADS=1 python benchmarks/seen_from_sentences.py demo.kraq --data examples/hotpotqa-mini

From the vectors of their sentences passages are seen from the user's question itself; E(d|q) of the stored questions
(the 100 nearest passages of each) has the nearest one stand in. Bytes on the disk, milliseconds of a question, and the
agreement (adjusted Rand index, 95 %) of two clusters of ten passages with those of E(d|Q) from the encoder. No language
model is asked.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from proxies import agreement

from kraq_dspy.asset.store.instructed import INSTRUCTED, InstructedStore
from kraq_dspy.eval.statistics import bootstrap_mean
from kraq_dspy.indexing.prepare.instructed import StoredSentences, precompute_pairs, store_sentences
from kraq_dspy.models.embedders.instructed import WeightedSentences, load_instructed_embedder
from kraq_dspy.ports import Vectors
from kraq_dspy.programs.speculative.subsets import cluster
from kraq_dspy.records import Chunk
from kraq_dspy.settings import InstructedSettings
from kraq_dspy.workspace import Workspace

PASSAGES, CLUSTERS = 10, 2  # the papers' for TriviaQA


class ReadOnce:
    """The encoder, which reads the sentences of a passage once: nobody waits for 100 readings of each."""

    def __init__(self, embedder: WeightedSentences) -> None:
        self.embedder, self.name, self.dimension = embedder, embedder.name, embedder.dimension
        self.known: dict[str, Vectors] = {}

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        fresh = [passage for passage in dict.fromkeys(passages) if passage not in self.known]
        self.known.update(zip(fresh, self.embedder.sentences(fresh), strict=True))
        return self.embedder.weighed(question, [self.known[passage] for passage in passages])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="where questions.jsonl lies")
    options = parser.parse_args()
    lines = (options.data / "questions.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        took = {"by the encoder": 0.0}
        path = Path(shutil.copytree(options.index, Path(folder) / "copy.kraq"))
        with Workspace.open(path, write=True) as space:
            embedder = load_instructed_embedder(InstructedSettings(kind="sentences"))
            assert isinstance(embedder, WeightedSentences)
            (path / INSTRUCTED).unlink(missing_ok=True)
            began = time.perf_counter()
            sentences = store_sentences(space.index, embedder)
            took["stored sentences"] = time.perf_counter() - began
            with_sentences = path / INSTRUCTED
            set_aside = with_sentences.rename(path.with_suffix(".sentences"))
            began = time.perf_counter()
            pairs = precompute_pairs(space.index, ReadOnce(embedder), top_n=100)
            took["as seen from q*"] = time.perf_counter() - began
            seen = StoredSentences(InstructedStore.open(set_aside, encoder_name=embedder.sentences_name), embedder)
            store = InstructedStore.open(path / INSTRUCTED, encoder_name=embedder.name)
            find, nearest = space.retriever("dense"), space.questions()

            def from_proxy(question: str, chunks: Sequence[Chunk]) -> Vectors:
                [proxy] = nearest(question, 1)
                vectors, stored = store.lookup(proxy.question.id, [chunk.id for chunk in chunks])
                missing = [chunk.passage for chunk, is_stored in zip(chunks, stored, strict=True) if not is_stored]
                if missing:
                    vectors[~stored] = embedder.encode(proxy.question.text, missing)
                return vectors

            ways = {
                "by the encoder": lambda question, chunks: embedder.encode(
                    question, [chunk.passage for chunk in chunks]
                ),
                "stored sentences": lambda question, chunks: seen.seen_from(question, chunks)[0],
                "as seen from q*": from_proxy,
            }
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            alike: dict[str, list[float]] = {way: [] for way in ways}
            for question in questions:
                chunks = [hit.chunk for hit in find(question, PASSAGES)]
                own = None
                for way, see in ways.items():
                    started = time.perf_counter()
                    vectors = see(question, chunks)
                    seconds[way].append(time.perf_counter() - started)
                    clusters = cluster(vectors, CLUSTERS)
                    own = clusters if own is None else own
                    alike[way].append(agreement(own, clusters))
            seen.store.close()
            store.close()
    n_bytes = {"by the encoder": 0, "stored sentences": sentences["n_bytes"], "as seen from q*": pairs["n_bytes"]}
    print(f"{len(questions)} questions")
    print("| E(d\\|Q) | made in, s | MB | ms a question | agreement |\n|---|---|---|---|---|")
    for way in ways:
        mean = bootstrap_mean(alike[way])
        shown = f"{mean.estimate:.3f} [{mean.low:.3f}, {mean.high:.3f}]"
        print(
            f"| {way} | {took[way]:.0f} | {n_bytes[way] / 1e6:.1f} | {1000 * np.median(seconds[way]):.1f} | {shown} |"
        )


if __name__ == "__main__":
    main()
