"""Holds an index's questions against what people asked: Relevance, coverage, and both for the table of contents.

    python benchmarks/questions_asked.py manual.kraq --data ../shared/data

Relevance: the mean cosine of each question with the nearest that somebody asked. Coverage: the share of the asked
questions with a question at a cosine of .6, among those that the corpus is about (a section at .5). Intervals of 95 %
by drawing the questions anew. The index is that of the set's corpus, made with any generator.
"""

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kraq_dspy.asset.store.index import Index
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.settings import EncoderSettings

NEAR, ABOUT = 0.6, 0.5  # cosines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    embedder = load_embedder(EncoderSettings())
    sections = rows(options.data / "tv_manual" / "corpus.jsonl.gz")
    asked = embedder.encode_queries([row["question"] for row in rows(options.data / "tv_manual" / "asked.jsonl.gz")])
    passages = embedder.encode_passages([f"{row['title']}\n{row['text']}" for row in sections])
    on_topic = (asked @ passages.T).max(axis=1) >= ABOUT
    with Index.open(options.index) as index:
        shown = [question.text for question in index.questions(source="kraq")]
    titles = sorted({row["title"] for row in sections if row["title"]})
    for name, texts in (("the index", shown), ("section titles", titles)):
        cosines = embedder.encode_queries(texts) @ asked.T
        near, covered = cosines.max(axis=1), cosines.max(axis=0)[on_topic] >= NEAR
        print(f"{name}: {len(texts)} questions, Relevance {interval(near)}, coverage {interval(covered)}")


def rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def interval(values: Sequence[float], draws: int = 2000) -> str:
    numbers, chance = np.asarray(values, dtype=float), np.random.default_rng(0)
    means = [chance.choice(numbers, len(numbers)).mean() for _ in range(draws)]
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{numbers.mean():.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
