"""Compares encoders of passages as seen from a question, E(d|q), by what clusters of them do for Speculative RAG.

    kraq demo
    python benchmarks/seen_from.py --index demo.kraq --questions examples/hotpotqa-mini/questions.jsonl
    python benchmarks/seen_from.py ... --decoder models/smollm2-135m.gguf --layers 10 --layers 20 --no-pair

For each question that retrieval brings at least two supporting passages of: are two of them in different clusters (a
subset takes one passage of each cluster, so else no draft reads both), and how much of the support does the best of m
subsets hold; from the question itself and from its nearest KRAQ question, whose clusters are compared by the adjusted
Rand index. "common" is the share of what another question changes that is the same for all passages, which no cluster
sees. Beside the encoders: vectors that no question has seen, clusters by chance of the same sizes (mean of 200 draws),
and subsets of unlike passages without any cluster. No language model is asked.
"""

import argparse
import itertools
import json
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.config import EncoderSettings, InstructedSettings
from kraq_dspy.embedders import load_embedder
from kraq_dspy.embedders.instructed import WeightedSentences, load_instructed_embedder
from kraq_dspy.eval.statistics import bootstrap_mean
from kraq_dspy.ports import Vectors
from kraq_dspy.prepare.calibrate import agreement
from kraq_dspy.programs.speculative.subsets import cluster, draw_subsets
from kraq_dspy.workspace import Workspace

N, K, M = 10, 4, 8  # the papers' for HotPotQA
DRAWS = 200
COLUMNS = ("apart, Q", "apart, q*", "support, Q", "support, q*", "agree Q, q*", "common", "ms")
Measures = dict[str, dict[str, list[float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True, help="JSON lines: question, supporting_ids")
    parser.add_argument("--limit", type=int, help="questions")
    parser.add_argument("--decoder", action="append", default=[], help="a language model: a folder or a GGUF file")
    parser.add_argument("--layers", type=int, action="append", help="of the decoder, each a row")
    parser.add_argument("--sharpness", type=float, action="append", help="of the weighted sentences, each a row")
    parser.add_argument("--no-pair", action="store_true", help="leave the slow pairs out")
    parser.add_argument("--retriever", default="hybrid")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measures = measure(options)
    if options.json:
        print(json.dumps({"machine": machine(), "measures": measures}))
    else:
        show(measures, options)


def measure(options: Any) -> Measures:
    rows_read = [json.loads(line) for line in options.questions.read_text("utf-8").splitlines()]
    examples = rows_read[: options.limit]
    embedder = load_embedder(EncoderSettings())
    encoders: dict[str, Any] = {"no question (mean of sentences)": WeightedSentences(embedder, sharpness=0)}
    for sharpness in options.sharpness or (5, 10, 20):
        encoders[f"sentences, sharpness {sharpness:g}"] = WeightedSentences(embedder, sharpness=sharpness)
    if not options.no_pair:
        encoders["pair"] = load_instructed_embedder(InstructedSettings(kind="pair"))
    for name, layers in itertools.product(options.decoder, options.layers or (None,)):
        decoder: Any = load_instructed_embedder(InstructedSettings(kind="decoder", name=name, layers=layers))
        encoders[f"{Path(name).stem}, layer {decoder.layers}"] = decoder
    rows: Measures = defaultdict(lambda: defaultdict(list))
    with Workspace.open(options.index) as space:
        retrieve, nearest = space.retriever(options.retriever), space.questions()
        for number, example in enumerate(examples):
            question = example["question"]
            hits = retrieve(question, N)
            support = [row for row, hit in enumerate(hits) if hit.chunk.document_id in example["supporting_ids"]]
            if len(support) < 2:
                continue
            passages = [hit.chunk.passage for hit in hits]
            [proxy] = nearest(question, 1)
            of_question = (question, proxy.question.text, examples[number - 1]["question"])
            for name, encoder in encoders.items():
                one_question(rows[name], encoder, of_question, passages, support)
            by_chance(rows["clusters by chance"], len(passages), support, seed=number)
            plain = encoders["no question (mean of sentences)"].encode(question, passages)
            rows["unlike passages, no clusters"]["support, Q"].append(held(unlike(plain, K, M), support))
    return rows


def one_question(
    row: dict[str, list[float]],
    encoder: Any,
    questions: tuple[str, str, str],
    passages: Sequence[str],
    support: Sequence[int],
) -> None:
    began = time.perf_counter()
    from_question = encoder.encode(questions[0], passages)
    row["ms"].append((time.perf_counter() - began) * 1000 / len(passages))
    from_proxy, from_other = (encoder.encode(question, passages) for question in questions[1:])
    labels = [cluster(vectors, K) for vectors in (from_question, from_proxy)]
    for name, some in zip(("Q", "q*"), labels, strict=True):
        row[f"apart, {name}"].append(apart(some, support))
        row[f"support, {name}"].append(held(draw_subsets(some, M), support))
    row["agree Q, q*"].append(agreement(*labels))
    change = from_question - from_other
    total = float((change**2).sum(axis=1).mean())
    if total > 1e-9:
        row["common"].append(float((change.mean(axis=0) ** 2).sum()) / total)


def by_chance(row: dict[str, list[float]], n: int, support: Sequence[int], seed: int) -> None:
    draw = random.Random(seed)
    labels = [place % K for place in range(n)]
    parted, shares = [], []
    for _ in range(DRAWS):
        draw.shuffle(labels)
        parted.append(apart(labels, support))
        shares.append(held(draw_subsets(labels, M, seed=draw.randrange(1000)), support))
    row["apart, Q"].append(statistics.fmean(parted))
    row["support, Q"].append(statistics.fmean(shares))


def unlike(vectors: Vectors, k: int, m: int) -> list[tuple[int, ...]]:
    """Each of the first `m` passages, and those that are farthest from all that were taken before."""
    subsets = []
    for first in range(min(m, len(vectors))):
        taken = [first]
        while len(taken) < min(k, len(vectors)):
            nearest = (vectors @ vectors[taken].T).max(axis=1)
            nearest[taken] = np.inf
            taken.append(int(nearest.argmin()))
        subsets.append(tuple(sorted(taken)))
    return subsets


def apart(labels: Sequence[int], support: Sequence[int]) -> float:
    """Whether the first two supporting passages are in different clusters."""
    return float(labels[support[0]] != labels[support[1]])


def held(subsets: Sequence[Sequence[int]], support: Sequence[int]) -> float:
    return max(len({*subset} & {*support}) for subset in subsets) / len(support)


def show(measures: Measures, options: Any) -> None:
    n = max(len(row["apart, Q"]) for row in measures.values())
    table = Table(title=f"{options.index.name}, {n} questions, N={N}, k={K}, m={M}; {machine()}", title_justify="left")
    for column in ("seen by", *COLUMNS):
        table.add_column(column)
    shown: Callable[[list[float]], str] = lambda values: _interval(values) if values else ""  # noqa: E731
    for name, row in measures.items():
        table.add_row(name, *(f"{statistics.median(row['ms']):.2f}" if c == "ms" and row["ms"] else shown(row[c])
                              for c in COLUMNS))  # fmt: skip
    Console(width=170).print(table)


def _interval(values: list[float]) -> str:
    mean = bootstrap_mean(values)
    return f"{mean.estimate:.2f} [{mean.low:.2f}, {mean.high:.2f}]"


if __name__ == "__main__":
    main()
