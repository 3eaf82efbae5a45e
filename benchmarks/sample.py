"""Writes a small part of a data set as a folder of its own: so many questions, their evidence, and other passages.

    python benchmarks/sample.py hotpotqa --data ../shared/data --questions 30 --passages 60 --out runs/sample

The folder `runs/sample/hotpotqa` is what `kraq bench TABLE --data runs/sample -d hotpotqa` takes. Questions and
passages are drawn by seed 0; where the evidence alone has more than `--passages`, there are no others.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from default_program import sample

from kraq_dspy.eval.datasets import load_dataset


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """One row a line; returns how many there were."""
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return len(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", metavar="NAME")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--passages", type=int, default=60)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    part = sample(load_dataset(options.dataset, options.data), options.questions, 2 * options.passages)
    folder = options.out / options.dataset
    folder.mkdir(parents=True, exist_ok=True)
    documents = ({"id": each.id, "title": each.title, "text": each.text} for each in part.documents)
    questions = (
        {
            "id": each.id,
            "question": each.question,
            "answers": list(each.answers),
            "supporting_ids": sorted(each.supporting_ids),
            "type": each.type,
        }
        for each in part.examples
    )
    counts = write(folder / "corpus.jsonl", documents), write(folder / "questions.jsonl", questions)
    print(f"{folder}: {counts[0]} passages, {counts[1]} questions")


if __name__ == "__main__":
    main()
