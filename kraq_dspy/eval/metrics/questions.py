"""Measures generated questions: whether people ask them, and how much of a corpus they cover.

Relevance compares with reference questions (KRAQ paper 4.2, Table 1). Coverage needs none: a chunk is covered when it
is among the `k` nearest to some question. Which chunks those are is an int64 array `[n_questions, k]` of chunk
positions, made once by `nearest_chunks`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import EvaluationError
from kraq_dspy.ports import Embedder, Vectors

_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class QuestionPair:
    """A reference question and the generated one nearest to it, by the cosine of their embeddings."""

    reference: str
    generated: str
    cosine: float


def pair_questions(references: Sequence[str], generated: Sequence[str], embedder: Embedder) -> list[QuestionPair]:
    """For each reference question the generated one with the highest cosine, the earlier one of equals.

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
    """For each L2-normalised row of `vectors` the row of `among` with the highest cosine, and that cosine."""
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


Nearest = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChosenQuestions:
    """Question positions in the order of choice; `coverage[i]` is the share covered by the first i + 1 of them."""

    positions: tuple[int, ...]
    coverage: tuple[float, ...]


def nearest_chunks(questions: Vectors, chunks: Vectors, k: int) -> Nearest:
    """Positions of the `k` chunks nearest to each question by cosine, nearest first.

    Rows are L2-normalised. With fewer than `k` chunks, all of them. Raises EvaluationError without questions or chunks.
    """
    if k < 1:
        raise ValueError(f"k is {k}; it must be 1 or more.")
    if not len(questions) or not len(chunks):
        raise EvaluationError(f"Coverage is undefined for {len(questions)} questions and {len(chunks)} chunks.")
    k = min(k, len(chunks))
    nearest = np.empty((len(questions), k), dtype=np.int64)
    for start in range(0, len(questions), _BLOCK):
        distances = -(questions[start : start + _BLOCK] @ chunks.T)
        best = np.argpartition(distances, k - 1, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(distances, best, axis=1), axis=1)
        nearest[start : start + _BLOCK] = np.take_along_axis(best, order, axis=1)
    return nearest


def coverage(nearest: Nearest, n_chunks: int) -> float:
    """Share of the `n_chunks` chunks that are near to some question, in [0, 1]."""
    return float(coverage_curve(nearest, n_chunks)[-1])


def coverage_curve(nearest: Nearest, n_chunks: int) -> NDArray[np.float64]:
    """Coverage by the first 1, 2, ... questions, in their order; float64 `[n_questions]`, never falling."""
    # A chunk is new at the first question that is near to it.
    _, first = np.unique(nearest, return_index=True)
    new = np.bincount(first // nearest.shape[1], minlength=len(nearest))
    return np.cumsum(new) / n_chunks


def choose_questions(nearest: Nearest, n_chunks: int, budget: int) -> ChosenQuestions:
    """The `budget` questions that cover most, chosen greedily; ties by position; fewer when there are fewer.

    Coverage is monotone and submodular, so this reaches at least 1 - 1/e of the best choice (Nemhauser et al., 1978).
    """
    if budget < 1:
        raise ValueError(f"budget is {budget}; it must be 1 or more.")
    covered = np.zeros(n_chunks, dtype=bool)
    gains = np.full(len(nearest), nearest.shape[1])
    positions: list[int] = []
    shares: list[float] = []
    while len(positions) < min(budget, len(nearest)):
        question = int(gains.argmax())
        covered[nearest[question]] = True
        positions.append(question)
        shares.append(float(covered.mean()))
        gains = (~covered[nearest]).sum(axis=1)
        gains[positions] = -1
    return ChosenQuestions(tuple(positions), tuple(shares))
