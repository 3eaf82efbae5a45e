"""Times evaluation: all metrics over 2,000 questions, and Relevance of 2,000 x 2,000 questions.

    python benchmarks/evaluation_speed.py [--data ../shared/data] [--json]

Questions and answers are those of SQuAD; the predicted answer is a sentence around the gold one, the ranking a shuffle
of twenty documents with the gold ones in it. Relevance is timed in its parts: the encoder, the pairing, BERTScore.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.config import EncoderSettings
from kraq_dspy.embedders import load_embedder
from kraq_dspy.eval.datasets import load_dataset
from kraq_dspy.eval.metrics import answers, generation, retrieval
from kraq_dspy.eval.metrics.bertscore import BertScorer
from kraq_dspy.eval.metrics.questions import nearest_rows
from kraq_dspy.eval.statistics import compare
from kraq_dspy.ports import Vectors

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
QUESTIONS = 2000


@dataclass(frozen=True)
class Seconds:
    """On the clock, and of the processors: on a machine with other work, the second says what it takes."""

    wall: float
    cpu: float


def measured(data: Path) -> dict[str, Seconds]:
    """By what was done, for 2,000 questions."""
    examples = [each for each in load_dataset("squad", data).examples if each.answers and each.supporting_ids]
    questions = (examples * (QUESTIONS // len(examples) + 1))[:QUESTIONS]
    gold = [each.answers for each in questions]
    predicted = [f"It is said that the answer is {each.answers[0]}, as the passage says." for each in questions]
    rng = random.Random(0)
    others = sorted({document for each in examples for document in each.supporting_ids})
    support = [frozenset(each.supporting_ids) for each in questions]
    ranked = [rng.sample([*sorted(own), *rng.sample(others, 20)], 20 + len(own)) for own in support]
    generation.meteor(gold[0], predicted[0])  # loads its word lists

    def answered(metric: Callable[[Sequence[str], str], float]) -> Seconds:
        return _time(lambda: [metric(g, p) for g, p in zip(gold, predicted, strict=True)])

    def retrieved(metric: Callable[[Collection[str], Sequence[str], int | None], float]) -> Seconds:
        return _time(lambda: [metric(g, r, 15) for g, r in zip(support, ranked, strict=True)])

    scores = [rng.random() for _ in questions]
    seconds = {
        "exact match": answered(answers.exact_match),
        "strict exact match": answered(answers.strict_exact_match),
        "token F1": answered(answers.token_f1),
        "ROUGE-L": answered(generation.rouge_l),
        "BLEU-4": answered(generation.bleu),
        "METEOR": answered(generation.meteor),
        "recall@15": retrieved(retrieval.recall_at_k),
        "all supporting@15": retrieved(retrieval.all_supporting_at_k),
        "MAP@15": retrieved(retrieval.average_precision),
        "nDCG@15": retrieved(retrieval.ndcg_at_k),
        "intervals and paired test": _time(lambda: compare(scores, scores[::-1])),
    }
    parts = list(seconds.values())
    seconds["all of these"] = Seconds(sum(part.wall for part in parts), sum(part.cpu for part in parts))

    embedder = load_embedder(EncoderSettings())
    references = [each.question for each in questions]
    generated = [f"What about {text[:1].lower()}{text[1:]}" for text in references[::-1]]
    embedder.encode_queries(references[:64])  # the first batch of a process is slow
    vectors: list[Vectors] = []
    seconds["Relevance: encoder, 4,000 questions"] = _time(
        lambda: vectors.extend(embedder.encode_queries(texts) for texts in (references, generated))
    )
    nearest: list[int] = []
    seconds["Relevance: pairing, 2,000 x 2,000"] = _time(lambda: nearest.extend(nearest_rows(*vectors)[0].tolist()))
    scorer = BertScorer.packaged()
    scorer.score(references[:8], generated[:8])
    pairs = [generated[position] for position in nearest]
    seconds["Relevance: BERTScore (MiniLM), 2,000 pairs"] = _time(lambda: scorer.score(references, pairs))
    return seconds


def _time(work: Callable[[], Any]) -> Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of data sets, squad among them")
    parser.add_argument("--json", action="store_true", help="seconds as JSON on stdout")
    options = parser.parse_args()
    seconds = measured(options.data)
    if options.json:
        print(
            json.dumps(
                {"machine": machine(), "seconds": {name: asdict(each) for name, each in seconds.items()}}, indent=1
            )
        )
        return
    table = Table(title=f"{QUESTIONS:,} questions")
    table.add_column("what")
    table.add_column("seconds", justify="right")
    table.add_column("of the processors", justify="right")
    for name, each in seconds.items():
        table.add_row(name, f"{each.wall:.3f}", f"{each.cpu:.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
