"""Judges whether the documents answer a question, and says so in place of an answer, with questions that they do."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import dspy

from kraq_dspy._internal.rag_prediction import REFUSAL, REFUSED, RagPrediction
from kraq_dspy._internal.recent import Recent
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.vectors.points import words_of
from kraq_dspy.errors import KraqError
from kraq_dspy.indexing.refusals.foreign_questions import ABOUT_THE_WHOLE
from kraq_dspy.indexing.refusals.scoring import CountsWords, HeldScore, PassageScorer
from kraq_dspy.indexing.refusals.threshold import Threshold, read_threshold
from kraq_dspy.ports import Embedder, Vectors
from kraq_dspy.records import Hit

logger = logging.getLogger(__name__)

REMEMBERED = 2048
"""Stored questions whose scores a judge keeps."""
_ADDRESS = r"\b(?:[\w-]{2,}\.)+[a-z]{2,}\b"
SHOWN = 3
"""Passages nearest to a question that a refusal shows."""


@dataclass(frozen=True, slots=True)
class Answerability:
    """Whether the documents answer a question, and by what that was told.

    `score`, in [0, 1], is how much of the question the nearest passages hold; None if it could not be told. `threshold`
    is the score below which this corpus does not answer, None if the index has none; then `is_answerable` is None.
    `nearest` are the nearest passages, (chunk id, cosine), best first. `missing` is a site or file that the question
    names by its address and no document has, "" for none: then nothing answers, whatever resembles the question.

    >>> Answerability(0.2, 0.38, False).is_answerable
    False
    """

    score: float | None
    threshold: float | None
    is_answerable: bool | None
    nearest: tuple[tuple[str, float], ...] = ()
    missing: str = ""


class AnswerabilityJudge:
    """Judges questions by the threshold of an index, or of a view of it. No language model is asked. Safe for threads.

    `least` is a threshold that takes the place of the index's own.
    """

    def __init__(self, index: Index, embedder: Embedder, least: float | None = None) -> None:
        self._index, self._embedder, self._least = index, embedder, least
        self._scorer = PassageScorer(index, embedder)
        self._recent_scores = Recent[str, float](REMEMBERED)

    def __call__(self, question: str) -> Answerability:
        """If the index is partly unreadable, unknown values are None, and the log says so."""
        [judged] = self.judge([question])
        return judged

    def judge(self, questions: Sequence[str]) -> list[Answerability]:
        """Judge many questions at once, in their order, as one by one."""
        try:
            scores = self._scorer(questions)
            threshold = self.threshold
        except KraqError as error:
            logger.info("kraq cannot tell whether the documents answer: %s", error)
            return [Answerability(None, None, None)] * len(questions)
        return [self._judged(question, score, threshold) for question, score in zip(questions, scores, strict=True)]

    def _judged(self, question: str, score: HeldScore, threshold: Threshold | None) -> Answerability:
        if threshold is None:
            return Answerability(score.value, None, None, score.nearest)
        if missing := self._missing_address(question):
            return Answerability(score.value, threshold.score, False, score.nearest, missing)
        is_answerable = score.value >= threshold.score
        if not is_answerable:
            [vector] = self._embedder.encode_queries([question])
            is_answerable = bool((self._about_the_whole @ vector).max() >= threshold.whole)
        return Answerability(score.value, threshold.score, is_answerable, score.nearest)

    def _missing_address(self, question: str) -> str:
        store = self._index.chunk_vectors
        if not isinstance(store, CountsWords):
            return ""
        addresses = re.findall(_ADDRESS, question)
        return next((each for each in addresses if 0 in store.texts_with(words_of(each))), "")

    def holds(self, questions: Sequence[str], vectors: Vectors) -> list[bool]:
        """Which of the questions, given with their embeddings, score at the threshold or above.

        The scores of an index that does not change are kept, since the same questions are looked at again and again.
        """
        row_of = {question: row for row, question in enumerate(questions)}

        def scores_of(some: Sequence[str]) -> list[float]:
            rows = vectors[[row_of[question] for question in some]]
            return [each.value for each in self._scorer(some, rows)]

        threshold = self.threshold
        if threshold is None:
            return [True] * len(questions)

        scores = self._recent_scores.of(questions, scores_of) if self._index.is_constant else scores_of(questions)
        return [score >= threshold.score for score in scores]

    @cached_property
    def threshold(self) -> Threshold | None:
        stored = read_threshold(self._index)
        if self._least is None:
            return stored
        return Threshold(self._least, stored.whole if stored is not None else 1.0)

    @cached_property
    def _about_the_whole(self) -> Vectors:
        return self._embedder.encode_queries(ABOUT_THE_WHOLE)


def refusal(index: Index, question: str, judged: Answerability) -> dspy.Prediction:
    """The prediction in place of a program's. Its `hits` are the nearest passages."""
    nearest = judged.nearest[:SHOWN]
    chunks = index.chunks_by_id([chunk_id for chunk_id, _ in nearest])
    hits = [Hit(chunk, cosine, question, "dense") for chunk, (_, cosine) in zip(chunks, nearest, strict=True)]
    answer = f"{REFUSED} They have nothing of {judged.missing}." if judged.missing else REFUSED
    return RagPrediction(answer=answer, hits=hits, source=REFUSAL, threshold=judged.threshold)


def is_refusal(prediction: dspy.Prediction) -> bool:
    """Whether a prediction says that the documents do not answer.

    >>> is_refusal(dspy.Prediction(answer="London."))
    False
    """
    return bool(prediction.get("source") == REFUSAL)


def refusal_text(offered: Sequence[str], answer: str = REFUSED) -> str:
    """A refusal, the `answer`, with the questions that the documents do answer, for those who are shown text alone.

    >>> print(refusal_text(["What is Vanilla?"]))
    The documents do not answer this question. They do answer:
    - What is Vanilla?
    """
    if not offered:
        return answer
    return "\n".join([f"{answer} They do answer:", *(f"- {text}" for text in offered)])
