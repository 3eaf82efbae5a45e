"""Draws a part of a data set for a benchmark that has to be done in minutes: human questions and their corpus."""

import random
from dataclasses import replace

from kraq_dspy.eval.datasets import Dataset, Example

MOST_GOLD = 10
"""Passages that answer one question; such as have more are left out, since ten hits cannot hold them."""


def part_of(dataset: Dataset, *, questions: int, passages: int, measured: frozenset[str] = frozenset()) -> Dataset:
    """Up to so many questions with their evidence, and other passages: first those that were shown with a question.

    Questions whose evidence is all among the `measured` documents are left out. The same call draws the same part.
    """
    usable = [
        example
        for example in sorted(dataset.examples, key=lambda example: example.id)
        if 0 < len(example.supporting_ids) <= MOST_GOLD and not measured.issuperset(example.supporting_ids)
    ]
    random.Random(1).shuffle(usable)

    evidence_ids: dict[str, None] = {}
    chosen: list[Example] = []
    for example in usable:
        if len(chosen) < questions and len(evidence_ids.keys() | set(example.supporting_ids)) <= passages:
            evidence_ids |= dict.fromkeys(example.supporting_ids)
            chosen.append(example)

    near = [document_id for example in chosen for document_id in example.context_ids]
    others = sorted(document.id for document in dataset.documents)
    random.Random(2).shuffle(others)
    for document_id in (*near, *others):
        if len(evidence_ids) < passages:
            evidence_ids[document_id] = None

    documents = tuple(document for document in dataset.documents if document.id in evidence_ids)
    return Dataset(dataset.name, documents, tuple(replace(example, context_ids=()) for example in chosen))
