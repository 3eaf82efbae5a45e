"""Measures generated questions: how near they come to those that people ask (Relevance; KRAQ paper 4.2, Table 1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import EvaluationError
from kraq_dspy.ports import Embedder

_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class QuestionPair:
    """A reference question and the generated one nearest to it, by the cosine of their embeddings."""

    reference: str
    generated: str
    cosine: float


def pair_questions(references: Sequence[str], generated: Sequence[str], embedder: Embedder) -> list[QuestionPair]:
    """Pair each reference question with the generated one of highest cosine, the earlier of equals.

    Raises EvaluationError when there are no questions on one side, or a blank one.
    """
    _check_questions(references, "reference")
    _check_questions(generated, "generated")
    texts = list(dict.fromkeys((*references, *generated)))
    vectors = embedder.encode_queries(texts)
    position = {text: index for index, text in enumerate(texts)}
    nearest, cosines = nearest_rows(
        vectors[[position[text] for text in references]], vectors[[position[text] for text in generated]]
    )
    return [
        QuestionPair(reference, generated[near], float(cosine))
        for reference, near, cosine in zip(references, nearest, cosines, strict=True)
    ]


def nearest_rows(
    vectors: NDArray[np.float32], among: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find for each L2-normalised row of `vectors` the row of `among` with the highest cosine, and
    that cosine."""
    nearest = np.empty(len(vectors), dtype=np.int64)
    cosines = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK] @ among.T
        best = block.argmax(axis=1)
        nearest[start : start + _BLOCK] = best
        cosines[start : start + _BLOCK] = block[np.arange(len(block)), best]
    return nearest, cosines


def _check_questions(questions: Sequence[str], side: str) -> None:
    if not questions:
        raise EvaluationError(f"There are no {side} questions, so Relevance is undefined.")
    for row, question in enumerate(questions):
        if not isinstance(question, str) or not question.strip():
            raise EvaluationError(f"Row {row}: the {side} question is {question!r}; expected text.")
