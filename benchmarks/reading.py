"""Measures what the embedded model reads from passages: short answers, sentences and refusals, on public sets.

    python benchmarks/reading.py --data ../shared/data

Each question is answered from the ten passages of its set that share most words with it (BM25). A short answer is what
the model drafts; where it has none, the draft is a sentence. No index is built and nothing is kept.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stand_in import machine

from kraq_dspy.asset.store.vectors.points import document_weights, query_weights
from kraq_dspy.embedded.answer import UNKNOWN, answer, short_answer
from kraq_dspy.embedded.engine import EmbeddedEngine
from kraq_dspy.eval.datasets import Example, load_dataset
from kraq_dspy.eval.metrics.answers import exact_match, substring_match, token_f1
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.settings import EncoderSettings

SETS = ("squad", "hotpotqa", "clapnq", "xquad_de")
NOT_ANSWERED = ("unanswerable", "null_query", "null")
MOST_ANSWERED, MOST_OTHERS, READ = 300, 100, 10


@dataclass(frozen=True)
class Words:
    """The passages of a set by the weights of their words."""

    passages: Sequence[str]
    weights: Sequence[dict[int, float]]
    rarity: dict[int, float]

    @classmethod
    def of(cls, passages: Sequence[str]) -> "Words":
        weights = [document_weights(passage) for passage in passages]
        holding = Counter(word for each in weights for word in each)
        return cls(passages, weights, {word: len(passages) / count for word, count in holding.items()})

    def nearest(self, question: str) -> list[str]:
        asked = query_weights(question)

        def near(place: int) -> float:
            own = self.weights[place]
            weights = [own.get(word, 0.0) * self.rarity.get(word, 0.0) ** 0.3 for word in asked]
            return float(sum(weights))

        places = sorted(range(len(self.passages)), key=lambda place: -near(place))[:READ]
        return [self.passages[place] for place in places]


def drawn(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Answered and unanswered questions, the same for each run."""
    shuffled = sorted(examples, key=lambda each: each.id)
    random.Random(0).shuffle(shuffled)
    unanswered = [each for each in shuffled if each.type in NOT_ANSWERED]
    answered = [each for each in shuffled if each.type not in NOT_ANSWERED and each.answers]
    return answered[:MOST_ANSWERED], unanswered[:MOST_OTHERS]


def measure(name: str, data: Path, engine: EmbeddedEngine) -> str:
    """A row of the table for one set."""
    dataset = load_dataset(name, data)
    passages = Words.of([f"{each.title}\n{each.text}" for each in dataset.documents])
    answered, unanswered = drawn(dataset.examples)

    right = shorts = right_shorts = refused = 0
    exact = overlap = 0.0
    start = time.process_time()
    for example in answered:
        found = passages.nearest(example.question)
        whole = answer(example.question, found, engine.similar)
        draft, rationale = short_answer(example.question, found, engine.similar)
        refused += whole == UNKNOWN
        right += bool(substring_match(example.answers, whole))
        exact += exact_match(example.answers, draft)
        overlap += token_f1(example.answers, draft)
        if draft != UNKNOWN and not rationale.startswith(draft[:40]):
            shorts += 1
            right_shorts += token_f1(example.answers, draft) > 0
    seconds = time.process_time() - start
    declined = sum(
        answer(each.question, passages.nearest(each.question), engine.similar) == UNKNOWN for each in unanswered
    )
    n = len(answered)
    return (
        f"| {name} | {n} | {exact / n:.3f} | {overlap / n:.3f} | {right / n:.3f} | {right_shorts} of {shorts} "
        f"| {refused} | {declined} of {len(unanswered)} | {1000 * seconds / n:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=SETS)
    arguments = parser.parse_args()

    engine = EmbeddedEngine(load_embedder(EncoderSettings()))
    print(machine())
    print("| set | questions | EM | F1 | answer holds gold | right of short | refused | unanswerable refused | ms |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in arguments.sets:
        print(measure(name, arguments.data, engine), flush=True)


if __name__ == "__main__":
    main()
