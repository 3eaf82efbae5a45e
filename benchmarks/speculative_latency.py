"""Times what Efficient Speculative RAG saves, stage by stage and from question to answer.

    python benchmarks/speculative_latency.py [--questions 20] [--latency-ms 300] [--json]

Synthetic passages of about 220 tokens, the packaged encoder reading question and passage as a pair, 25,000 stored
questions, and a stand-in server that answers every draft and verdict after a fixed time. Both programs answer the same
questions in turn, at N = 10, 15 and 20 (k = 3, m = 8, as in the KRAQ thesis, 5.2.8). Two figures are kept apart: the
wall clock, and the papers' model (the sum of each stage's median, drafts and verdicts by their longest).

The last part is the orchestration alone: 10 drafts and their verdicts at once against one draft and one verdict.
"""

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from stand_in import machine, stand_in

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.instructed import InstructedRow, InstructedStore
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.embedders.instructed import load_instructed_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.ports import Vectors
from kraq_dspy.programs.speculative.efficient_speculative_rag import EfficientSpeculativeRAG
from kraq_dspy.programs.speculative.speculative_rag import SpeculativeRAG, StageSeconds
from kraq_dspy.records import Chunk, Question, content_id
from kraq_dspy.retrievers.combined import NearestQuestions
from kraq_dspy.retrievers.words_and_meaning import DenseRetriever
from kraq_dspy.settings import EncoderSettings, InstructedSettings, RoleSettings, Settings

WORDS = ("river", "mountain", "engine", "poem", "harbour", "king", "treaty", "novel", "bridge", "court", "music")
STAGES = ("retrieve", "proxy", "lookup", "embed", "cluster", "draft_max", "verify_max", "select")
PAPERS_CUT = {10: 2.7, 15: 3.5, 20: 7.4}  # percent, KRAQ paper, table 8


def text(number: int, words: int) -> str:
    rng = random.Random(number)
    return " ".join(rng.choice(WORDS) for _ in range(words)).capitalize() + "."


class OnePassage:
    """Always the same `n` passages, of an index that need not exist."""

    def __init__(self, hits: Sequence[Any]) -> None:
        self.hits = list(hits)

    def __call__(self, question: str, k: int, **_: Any) -> list[Any]:
        return self.hits[:k]


def fill(index: Index, embedder: Any, n_chunks: int, n_questions: int) -> list[str]:
    """Passages with real vectors; stored questions with random ones, but for those that are asked. Returns these."""
    chunks = [Chunk(content_id("chunk", str(i)), f"document {i}", 0, 0, 1, text(i, 200), 220) for i in range(n_chunks)]
    index.add(chunks)
    index.chunk_vectors.upsert([c.id for c in chunks], embedder.encode_passages([c.text for c in chunks]))
    questions = [f"What does the text say about {text(10_000 + i, 6)[:-1]}?" for i in range(40)]
    near = [Question(content_id("near", q), f"{q} And why?", "kraq", None, 0, (), ()) for q in questions]
    far = [Question(content_id("far", str(i)), f"Question {i}?", "kraq", None, 0, (), ()) for i in range(n_questions)]
    index.add([*near, *far])
    rng = np.random.default_rng(0)
    rows: Vectors = rng.standard_normal((n_questions, embedder.dimension), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    payloads = [{"source": "kraq"}] * (n_questions + len(near))
    vectors = np.concatenate([embedder.encode_queries([q.text for q in near]), rows])
    index.question_vectors.upsert([q.id for q in (*near, *far)], vectors, payloads=payloads)
    return questions


def medians(times: Sequence[StageSeconds]) -> dict[str, float]:
    """Milliseconds of each stage; "wall" is measured, "papers_model" the sum of the stages' medians (thesis, 5.5)."""
    milliseconds = {stage: 1000 * statistics.median(getattr(seconds, stage) for seconds in times) for stage in STAGES}
    return {
        **milliseconds,
        "embed_and_cluster": 1000 * statistics.median(seconds.embed_and_cluster for seconds in times),
        "papers_model": sum(milliseconds.values()),
        "wall": 1000 * statistics.median(seconds.wall for seconds in times),
    }


def compare(n: int, questions: Sequence[str], make: Callable[[bool, int], SpeculativeRAG]) -> dict[str, Any]:
    programs = {"speculative": make(False, n), "efficient": make(True, n)}
    times: dict[str, list[StageSeconds]] = {name: [] for name in programs}
    for program in programs.values():
        program(question=questions[0])  # connections, and the first pass of the encoder
    for question in questions:
        for name, program in programs.items():
            prediction = program(question=question)
            assert name == "speculative" or (prediction.n_looked_up, prediction.n_embedded) == (n, 0)
            times[name].append(prediction.timings)
    figures: dict[str, Any] = {name: medians(taken) for name, taken in times.items()}
    online, looked_up = figures["speculative"], figures["efficient"]
    figures["embed_and_cluster_ratio"] = online["embed_and_cluster"] / looked_up["embed_and_cluster"]
    figures["encoder_to_lookup_ratio"] = online["embed"] / looked_up["lookup"]
    for figure in ("wall", "papers_model"):
        figures[f"{figure}_cut_percent"] = 100 * (1 - looked_up[figure] / online[figure])
    return figures


def orchestration(program_of: Callable[[int], SpeculativeRAG], repeats: int) -> dict[str, float]:
    """Seconds of drafts and verdicts together, for 1 and for 10 drafts, in threads and as tasks."""
    with_one_draft, with_ten_drafts = program_of(1), program_of(10)

    def spent(run: Callable[[], dspy.Prediction]) -> float:
        started = time.perf_counter()
        timings: StageSeconds = run().timings
        return time.perf_counter() - started - timings.retrieve - timings.embed_and_cluster

    async def tasks() -> dict[str, list[float]]:
        taken: dict[str, list[float]] = {"one": [], "ten": []}
        for _ in range(repeats + 1):
            for name, program in (("one", with_one_draft), ("ten", with_ten_drafts)):
                started = time.perf_counter()
                timings = (await program.acall(question="q")).timings
                taken[name].append(time.perf_counter() - started - timings.retrieve - timings.embed_and_cluster)
        return taken

    in_threads: dict[str, list[float]] = {"one": [], "ten": []}
    for _ in range(repeats + 1):
        in_threads["one"].append(spent(lambda: with_one_draft(question="q")))
        in_threads["ten"].append(spent(lambda: with_ten_drafts(question="q")))
    as_tasks = asyncio.run(tasks())
    figures: dict[str, float] = {}
    for how, taken in (("threads", in_threads), ("tasks", as_tasks)):
        medians_of = {name: statistics.median(values[1:]) for name, values in taken.items()}
        figures[f"{how}_one_s"], figures[f"{how}_ten_s"] = medians_of["one"], medians_of["ten"]
        figures[f"{how}_ratio"] = medians_of["ten"] / medians_of["one"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=20, help="questions asked of each program")
    parser.add_argument("--latency-ms", type=int, default=300, help="of every draft and verdict")
    parser.add_argument("--stored", type=int, default=25_000, help="stored questions")
    parser.add_argument("--threads", type=int, default=None, help="of the encoder")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    embedder = load_embedder(EncoderSettings(threads=options.threads))
    instructed = load_instructed_embedder(InstructedSettings(kind="pair", threads=options.threads))
    results: dict[str, Any] = {"machine": machine(), "latency_ms": options.latency_ms}
    with (
        tempfile.TemporaryDirectory() as folder,
        stand_in(latency_ms=options.latency_ms) as server,
        Index.create(
            Path(folder) / "bench.kraq", Settings(), encoder_name="bench", encoder_dimension=embedder.dimension
        ) as index,
    ):
        questions = fill(index, embedder, 300, options.stored)[: options.questions]
        dense = DenseRetriever(index, index.chunk_vectors, embedder)
        finder = NearestQuestions(index, index.question_vectors, embedder, filters={"source": "kraq"})
        store = InstructedStore.create(
            Path(folder) / "instructed.db", encoder_name=instructed.name, dimension=instructed.dimension
        )
        for question in questions:
            [near] = finder(question, 1)
            chunks = [hit.chunk for hit in dense(question, 100)]
            random_vectors = np.random.default_rng(0).standard_normal((100, instructed.dimension), dtype=np.float32)
            store.add([InstructedRow(near.question.id, tuple(chunk.id for chunk in chunks), random_vectors)])
        lm = make_lm(RoleSettings(model="hosted_vllm/bench", api_base=server.url))

        def make(efficient: bool, n: int) -> SpeculativeRAG:
            if efficient:
                return EfficientSpeculativeRAG(dense, finder, store, instructed, n=n, k=3, m=8)
            return SpeculativeRAG(dense, instructed, n=n, k=3, m=8)

        few = OnePassage(dense(questions[0], 10))
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            results["by_n"] = {n: compare(n, questions, make) for n in (10, 15, 20)}
            results["orchestration"] = orchestration(
                lambda m: SpeculativeRAG(few, instructed, n=10, k=2, m=m), min(options.questions, 10)
            )
        store.close()
        lm.engine.close()
    if options.json:
        print(json.dumps(results, indent=2))
        return
    show(results)


def show(results: dict[str, Any]) -> None:
    print(f"{results['machine']}; {results['latency_ms']} ms for every draft and verdict; medians in ms")
    for n, row in results["by_n"].items():
        print(f"N = {n}")
        for name in ("speculative", "efficient"):
            stages = "  ".join(f"{stage} {value:.1f}" for stage, value in row[name].items() if value)
            print(f"  {name:11}  {stages}")
        print(
            f"  embed and cluster {row['embed_and_cluster_ratio']:.0f} times faster (encoder against look-up "
            f"{row['encoder_to_lookup_ratio']:.0f}); wall clock -{row['wall_cut_percent']:.1f} %, papers' model "
            f"-{row['papers_model_cut_percent']:.1f} % (the papers: -{PAPERS_CUT[n]} %)"
        )
    figures = results["orchestration"]
    for how in ("threads", "tasks"):
        print(
            f"10 drafts and verdicts in {how}: {figures[f'{how}_ten_s']:.3f} s, one {figures[f'{how}_one_s']:.3f} s, "
            f"ratio {figures[f'{how}_ratio']:.2f}"
        )


if __name__ == "__main__":
    main()
