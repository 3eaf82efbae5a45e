"""Do clusters of passages, seen from the question, put the two passages that support an answer apart?

    kraq demo
    OMP_NUM_THREADS=1 python benchmarks/parted_evidence.py demo.kraq examples/hotpotqa-mini/questions.jsonl --limit 25

Speculative RAG draws each draft's evidence from all clusters, one passage of each (Wang et al., 2024, 3.2). Of the
questions of which ten passages hold at least two that support the answer: the share whose first two such passages lie
in different ones of four clusters. Passages are seen from the question by each encoder of the library, without any
question (the mean of a passage's sentences), and put into clusters by chance, of the same number. No language model is
asked. Means with 95 % bootstrap intervals; all differences to chance are paired.
"""

import argparse
import random
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.eval.questions import QuestionColumns, read_questions
from kraq_dspy.eval.statistics import Interval, bootstrap_difference, bootstrap_mean
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.embedders.instructed import WeightedSentences, load_instructed_embedder
from kraq_dspy.ports import InstructedEmbedder
from kraq_dspy.programs.speculative.subsets import cluster
from kraq_dspy.settings import EncoderSettings, InstructedSettings
from kraq_dspy.workspace import Workspace

PASSAGES, CLUSTERS = 10, 4  # the papers' for HotPotQA
DRAWS = 200
BY_CHANCE = "by chance"


def encoders() -> dict[str, InstructedEmbedder]:
    """By the name of its row: what sees a passage from a question."""
    return {
        "pair (the default)": load_instructed_embedder(InstructedSettings(kind="pair")),
        "sentences": load_instructed_embedder(InstructedSettings(kind="sentences")),
        "no question": WeightedSentences(load_embedder(EncoderSettings()), sharpness=0),
    }


def measure(index: Path, questions: Path, limit: int | None) -> dict[str, list[float]]:
    """By row, for each question 1.0 where its supporting passages are apart; by chance the share of draws."""
    rows: dict[str, list[float]] = {}
    seen_by = encoders()
    with Workspace.open(index) as space:
        retrieve = space.retriever("hybrid")
        for number, example in enumerate(read_questions(questions, QuestionColumns())[:limit]):
            hits = retrieve(example.question, PASSAGES)
            support = [place for place, hit in enumerate(hits) if hit.chunk.document_id in example.supporting_ids]
            if len(support) < 2:
                continue

            passages = [hit.chunk.passage for hit in hits]
            for name, encoder in seen_by.items():
                labels = cluster(encoder.encode(example.question, passages), CLUSTERS)
                rows.setdefault(name, []).append(apart(labels, support))
            rows.setdefault(BY_CHANCE, []).append(by_chance(len(passages), support, seed=number))
    return rows


def apart(labels: Sequence[int], support: Sequence[int]) -> float:
    """Whether the first two supporting passages are in different clusters."""
    return float(labels[support[0]] != labels[support[1]])


def by_chance(n_passages: int, support: Sequence[int], seed: int) -> float:
    """The share of draws of equal clusters that put them apart."""
    draw = random.Random(seed)
    labels = [place % CLUSTERS for place in range(n_passages)]
    parted = []
    for _ in range(DRAWS):
        draw.shuffle(labels)
        parted.append(apart(labels, support))
    return statistics.fmean(parted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("questions", type=Path, help="with supporting_ids")
    parser.add_argument("--limit", type=int, help="questions, the first ones")
    options = parser.parse_args()

    rows = measure(options.index, options.questions, options.limit)
    table = Table(title=f"{options.index.name}, {len(rows[BY_CHANCE])} questions; {machine()}")
    for column in ("seen by", "apart", "less chance"):
        table.add_column(column)
    for name, values in rows.items():
        less = bootstrap_difference(values, rows[BY_CHANCE])
        table.add_row(name, shown(bootstrap_mean(values)), shown(less, "+"))
    Console(width=120).print(table)


def shown(interval: Interval, sign: str = "") -> str:
    estimate, low, high = (format(value, f"{sign}.3f") for value in (interval.estimate, interval.low, interval.high))
    return f"{estimate} [{low}, {high}]"


if __name__ == "__main__":
    main()
