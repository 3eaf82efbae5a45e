"""Counts how often the embedded model's answers hold a gold answer, and how long they are, from passages that hold it.

    python benchmarks/embedded_answers.py --data ../shared/data

Each question is asked with the passages that its data set shows with it or, where it shows none, with its supporting
ones and five drawn ones: what is measured is the reader, not retrieval. "span" is the share that begins with a short
answer, and "right" how many of those spans hold a gold answer or are a part of one.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from kraq_dspy.embedders.sentence import SentenceEmbedder
from kraq_dspy.eval.datasets import load_dataset
from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.metrics.answers import exact_match
from kraq_dspy.lms.engines.embedded.answer import answer, short_answer

SETS = ("hotpotqa", "musique", "squad", "popqa", "triviaqa_mini")
DRAWN = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=80, help="questions of each set")
    options = parser.parse_args()
    embedder = SentenceEmbedder()

    def similar(question: str, texts: Sequence[str]) -> Sequence[float]:
        vectors = embedder.encode_passages([question, *texts])
        cosines: list[float] = (vectors[1:] @ vectors[0]).tolist()
        return cosines

    print("| data set | questions | gold in answer | words | span | right |\n|---|---|---|---|---|---|")
    for name in SETS:
        dataset = load_dataset(name, options.data)
        shown = with_passages(dataset, options.limit)
        answers = [answer(example.question, passages, similar) for example, passages in shown]
        match = [exact_match(example.answers, text) for (example, _), text in zip(shown, answers, strict=True)]
        spans = [
            (example, span)
            for (example, passages), text in zip(shown, answers, strict=True)
            if len(span := short_answer(example.question, passages, similar)[0]) < len(text) / 2
        ]
        right = sum(
            exact_match(example.answers, span) or any(span.lower() in gold.lower() for gold in example.answers)
            for example, span in spans
        )
        words = sum(len(text.split()) for text in answers) / len(answers)
        print(
            f"| {name} | {len(shown)} | {sum(match) / len(match):.3f} | {words:.0f} | {len(spans) / len(shown):.2f} | "
            f"{right / max(1, len(spans)):.2f} |",
            flush=True,
        )


def with_passages(dataset: Dataset, limit: int) -> list[tuple[Example, list[str]]]:
    """`limit` questions that have a gold answer and evidence, drawn by a seed, with the passages to read."""
    draw = random.Random(2)
    texts = {document.id: f"{document.title}\n{document.text}".strip() for document in dataset.documents}
    answerable = [one for one in dataset.examples if one.answers and (one.context_ids or one.supporting_ids)]
    rows = []
    for example in draw.sample(answerable, min(limit, len(answerable))):
        drawn = () if example.context_ids else draw.sample(sorted(texts), DRAWN)
        ids = dict.fromkeys((*example.context_ids, *example.supporting_ids, *drawn))
        rows.append((example, [texts[id] for id in ids if id in texts]))
    return rows


if __name__ == "__main__":
    main()
