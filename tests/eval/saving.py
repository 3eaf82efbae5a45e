"""Writes a data set as the files that `load_local` reads."""

import json
from pathlib import Path

from kraq_dspy.eval import Dataset


def save(dataset: Dataset, folder: Path) -> None:
    folder.mkdir(parents=True)
    corpus = [{"id": each.id, "title": each.title, "text": each.text} for each in dataset.documents]
    questions = [
        {"id": each.id, "question": each.question, "answers": each.answers, "supporting_ids": each.supporting_ids}
        for each in dataset.examples
    ]
    for name, rows in (("corpus", corpus), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
