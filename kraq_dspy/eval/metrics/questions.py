"""Measures whether generated questions ask what people ask: Relevance to reference ones (KRAQ paper 4.2, Table 1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.bertscore import BertScorer
from kraq_dspy.ports import Embedder

_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class QuestionPair:
    """A reference question and the generated one nearest to it, by the cosine of their embeddings."""

    reference: str
    generated: str
    cosine: float


@dataclass(frozen=True, slots=True)
class QuestionRelevance:
    """Relevance of a question set. `f1[i]` is the BERTScore F1 of `pairs[i]`, in [0, 1].

    `model` and `layer` (BERTScore) and `encoder` (pairing) belong to every figure: thresholds mean
    nothing across models.
    """

    pairs: tuple[QuestionPair, ...]
    f1: tuple[float, ...]
    model: str
    layer: int
    encoder: str

    @property
    def relevance(self) -> float:
        """Mean F1 over the reference questions."""
        return float(np.mean(self.f1))

    def at(self, threshold: float) -> float:
        """Relevance@threshold: share of the reference questions whose F1 is at least `threshold`."""
        return relevance_at(self.f1, threshold)


def question_relevance(
    references: Sequence[str], generated: Sequence[str], embedder: Embedder, scorer: BertScorer
) -> QuestionRelevance:
    """Pairs each reference question with its nearest generated one and scores the pairs with BERTScore.

    Raises EvaluationError when there are no questions on one side, or a blank one.
    """
    pairs = pair_questions(references, generated, embedder)
    scores = scorer.score([pair.reference for pair in pairs], [pair.generated for pair in pairs])
    return QuestionRelevance(tuple(pairs), tuple(scores.f1.tolist()), scores.model, scores.layer, embedder.name)


def pair_questions(references: Sequence[str], generated: Sequence[str], embedder: Embedder) -> list[QuestionPair]:
    """For each reference question the generated one with the highest cosine, the earlier one of equals.

    Time is the encoder's: the products are matrix products of blocks of references. Errors as in `question_relevance`.
    """
    _check(references, "reference")
    _check(generated, "generated")
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


def relevance_at(f1: Sequence[float], threshold: float) -> float:
    """Share of the scores that are at least `threshold`, in [0, 1]. Raises EvaluationError when empty or NaN."""
    scores = np.asarray(f1, dtype=np.float64)
    if not scores.size:
        raise EvaluationError("There are no scores, so Relevance@threshold is undefined.")
    if np.isnan(scores).any():
        raise EvaluationError(f"Row {int(np.isnan(scores).argmax())}: the score is NaN.")
    return float(np.mean(scores >= threshold))


def _check(questions: Sequence[str], side: str) -> None:
    if not questions:
        raise EvaluationError(f"There are no {side} questions, so Relevance is undefined.")
    for row, question in enumerate(questions):
        if not isinstance(question, str) or not question.strip():
            raise EvaluationError(f"Row {row}: the {side} question is {question!r}; expected text.")
