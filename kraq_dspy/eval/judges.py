"""Lets language models judge answers. A reply that is no verdict is a failure with a reason, never a silent 0.

Judges compare with gold answers. The judged metrics, RAGAS's four (Es et al., 2024), need none: groundedness, there
faithfulness, is the share of the answer's statements that the passages support; context recall the same of a gold
answer; context precision asks which passages help, and is higher where those stand first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.concurrency import run_all
from kraq_dspy._internal.step import Step
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.answers import check_prediction, check_references
from kraq_dspy.eval.metrics.for_dspy import evidence_of
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.records import Failure
from kraq_dspy.signatures.judging import (
    GradeAnswer,
    JudgeAnswer,
    JudgeListAnswer,
    JudgePassages,
    JudgeRelevance,
    JudgeSupport,
)

STAGE = "judge"
RIGHT_GRADE = 4
"""Grades from this one on count as right (QA search paper, section 5)."""


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """What a judge sees. `answer_items` are a list question's items, each with its synonyms; else empty."""

    id: str
    question: str
    gold: tuple[str, ...]
    answer: str
    answer_items: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's score of one question, in [0, 1]; `grade` and `feedback` are the rubric judge's."""

    question_id: str
    score: float
    grade: int | None = None
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """In the order of the questions; `failures` names those without a verdict (`item_id` is the question's id)."""

    verdicts: tuple[Verdict, ...]
    failures: tuple[Failure, ...]
    model: str

    @property
    def scores(self) -> dict[str, float]:
        """Score by question id, of the questions that have a verdict."""
        return {verdict.question_id: verdict.score for verdict in self.verdicts}


class BinaryJudge(SavableModule):
    """1.0 if the answer means the same as a gold one (or, for a list, covers most items), else 0.0.

    >>> with dspy.context(lm=lm):  # doctest: +SKIP
    ...     BinaryJudge()(AnsweredQuestion("q1", "Which city?", ("Oslo",), "It is Oslo.")).score
    1.0
    """

    def __init__(self) -> None:
        super().__init__()
        self.judge = Step(JudgeAnswer)
        self.judge_list = Step(JudgeListAnswer)

    async def aforward(self, answered: AnsweredQuestion) -> Verdict:
        if answered.answer_items:
            items = [list(synonyms) for synonyms in answered.answer_items]
            reply = await call(
                self.judge_list, question=answered.question, reference_items=items, answer=answered.answer
            )
        else:
            gold = list(answered.gold)
            reply = await call(self.judge, question=answered.question, reference_answers=gold, answer=answered.answer)
        return Verdict(answered.id, float(reply.correct))

    forward = blocking(aforward)


class RubricJudge(SavableModule):
    """Grades 1 to 5; the score is 1.0 from grade 4 on, else 0.0.

    >>> with dspy.context(lm=lm):  # doctest: +SKIP
    ...     RubricJudge()(AnsweredQuestion("q1", "Which city?", ("Oslo",), "It is Oslo.")).grade
    5
    """

    def __init__(self) -> None:
        super().__init__()
        self.grade = Step(GradeAnswer)

    async def aforward(self, answered: AnsweredQuestion) -> Verdict:
        gold = list(answered.gold) or ["; ".join(" or ".join(synonyms) for synonyms in answered.answer_items)]
        reply = await call(self.grade, question=answered.question, reference_answers=gold, answer=answered.answer)
        return Verdict(answered.id, float(reply.grade >= RIGHT_GRADE), reply.grade, reply.feedback)

    forward = blocking(aforward)


Judge = BinaryJudge | RubricJudge


def judge_answers(judge: Judge, answered: Sequence[AnsweredQuestion], *, concurrency: int = 8) -> Verdicts:
    """The judge's verdict on each question, `concurrency` at a time.

    A blank answer is wrong (0.0) without asking. A reply that cannot be read as a verdict, or a call that the model
    refused, becomes a failure. Raises EvaluationError for gold data that cannot be judged, or an id that occurs twice;
    budget and server-down errors end the run.
    """
    ids: set[str] = set()
    for question in answered:
        if question.id in ids:
            raise EvaluationError(f"Question {question.id!r} occurs twice.")
        ids.add(question.id)
        try:
            check_prediction(question.answer)
            for references in question.answer_items or (question.gold,):
                check_references(references)
        except EvaluationError as error:
            raise EvaluationError(f"Question {question.id!r}: {error}") from error

    def verdict_on(question: AnsweredQuestion) -> Verdict | Failure:
        if not question.answer.strip():
            return Verdict(question.id, 0.0, feedback="no answer")
        try:
            verdict: Verdict = judge(question)
        except AdapterParseError as error:
            return Failure(STAGE, question.id, f"the judge's reply is no verdict: {_reply(error)!r}")
        except LMError as error:
            return Failure(STAGE, question.id, f"the judge could not be asked: {error}")
        return verdict

    outcomes = run_all(verdict_on, answered, limit=concurrency)
    return Verdicts(
        tuple(outcome for outcome in outcomes if isinstance(outcome, Verdict)),
        tuple(outcome for outcome in outcomes if isinstance(outcome, Failure)),
        _model_name(judge),
    )


def _reply(error: AdapterParseError) -> str:
    text = str(getattr(error, "lm_response", "") or error)
    return text if len(text) <= 200 else text[:200] + "..."


def _model_name(judge: Judge) -> str:
    models = {str(lm.model) for predict in judge.predictors() if (lm := predict.lm or dspy.settings.lm) is not None}
    return ", ".join(sorted(models))


GRADES = 5


class JudgedMetric(SavableModule):
    """A score in [0, 1] that a model gives; a reply that is none raises EvaluationError."""

    name: ClassVar[str]
    signature: ClassVar[type[dspy.Signature]]

    def __init__(self) -> None:
        super().__init__()
        self.judge = dspy.Predict(self.signature)

    def score(self, example: Any, prediction: Any) -> float:
        """Of one answered question. Raises EvaluationError where the judge could not be asked or read."""
        try:
            with dspy.context(adapter=KraqAdapter()):
                return self.judged(example, prediction)
        except AdapterParseError as error:
            text = str(getattr(error, "lm_response", "") or error)
            raise EvaluationError(f"the judge's reply is no verdict: {text[:200]!r}") from error
        except LMError as error:
            raise EvaluationError(f"the judge could not be asked: {error}") from error

    def judged(self, example: Any, prediction: Any) -> float:
        raise NotImplementedError

    @staticmethod
    def is_defined(example: Any, prediction: Any) -> bool:
        """Whether there is anything to judge."""
        return True

    def _supported(self, question: str, passages: list[str], answer: str) -> float:
        statements = self.judge(question=question, passages=passages, answer=answer).statements
        if not statements:
            raise EvaluationError("the judge found no statement in the answer")
        return sum(bool(each.supported) for each in statements) / len(statements)


class Groundedness(JudgedMetric):
    """Share of the answer's statements that the retrieved passages support."""

    name, signature = "groundedness", JudgeSupport

    def judged(self, example: Any, prediction: Any) -> float:
        answer = str(prediction.answer)
        return self._supported(example.question, evidence_of(example, prediction), answer) if answer.strip() else 0.0


class AnswerRelevance(JudgedMetric):
    """How well the answer responds to the question: grades 1 to 5, as 0 to 1."""

    name, signature = "answer_relevance", JudgeRelevance

    def judged(self, example: Any, prediction: Any) -> float:
        answer = str(prediction.answer)
        if not answer.strip():
            return 0.0
        return (int(self.judge(question=example.question, answer=answer).grade) - 1) / (GRADES - 1)


class ContextPrecision(JudgedMetric):
    """Mean precision at the places of the passages that help; 0.0 where none does.

    Helpful to the gold answer where there is one, else to the answer that was given.
    """

    name, signature = "context_precision", JudgePassages

    @staticmethod
    def is_defined(example: Any, prediction: Any) -> bool:
        return bool(example.answers or prediction.get("answer"))

    def judged(self, example: Any, prediction: Any) -> float:
        passages = evidence_of(example, prediction)
        answer = " or ".join(example.answers[:3]) or str(prediction.answer)
        numbered = [f"{place}. {text}" for place, text in enumerate(passages, start=1)]
        if not passages:
            return 0.0
        named = self.judge(question=example.question, answer=answer, passages=numbered).helpful
        places = sorted({int(place) for place in named if 1 <= int(place) <= len(passages)})
        return sum(count / place for count, place in enumerate(places, start=1)) / len(places) if places else 0.0


class ContextRecall(JudgedMetric):
    """Share of the gold answer's statements that the retrieved passages support."""

    name, signature = "context_recall", JudgeSupport

    @staticmethod
    def is_defined(example: Any, prediction: Any) -> bool:
        return bool(example.answers)

    def judged(self, example: Any, prediction: Any) -> float:
        return self._supported(example.question, evidence_of(example, prediction), example.answers[0])


JUDGED: Mapping[str, type[JudgedMetric]] = {
    metric.name: metric for metric in (Groundedness, AnswerRelevance, ContextPrecision, ContextRecall)
}
"""Metrics by name that need a model for the role judge; only context recall needs a gold answer."""
