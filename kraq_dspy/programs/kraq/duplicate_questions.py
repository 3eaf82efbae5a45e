"""Marks questions that ask the same, and deletes none: a level keeps its partition."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from kraq_dspy.ports import Vectors
from kraq_dspy.records import Question

_BLOCK = 1024


def mark_duplicates(questions: Sequence[Question], vectors: Vectors, similarity: float) -> list[Question]:
    """The same questions in the same order, `duplicate_of` set where an earlier, unmarked one asks the same.

    `vectors` is float32 `[n_questions, dim]`, rows L2-normalised. Two questions ask the same if their texts are equal
    up to case and spaces, or if their cosine is at least `similarity`. Earlier means nearer to the front.
    """
    original_of: list[int | None] = [None] * len(questions)  # index of the question that each one repeats
    first_with_text: dict[str, int] = {}
    for index, question in enumerate(questions):
        twin = first_with_text.setdefault(" ".join(question.text.casefold().split()), index)
        original_of[index] = None if twin == index else twin
    for start in range(0, len(questions), _BLOCK):
        stop = min(start + _BLOCK, len(questions))
        near = vectors[start:stop] @ vectors[:stop].T >= similarity
        for row, column in np.argwhere(near):
            index, earlier = start + int(row), int(column)
            if earlier < index and original_of[index] is None and original_of[earlier] is None:
                original_of[index] = earlier
    return [
        dataclasses.replace(question, duplicate_of=None if twin is None else questions[twin].id)
        for question, twin in zip(questions, original_of, strict=True)
    ]
