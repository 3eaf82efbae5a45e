"""Lets language models judge answers. A reply that is no verdict is a failure with a reason, never a silent 0.

Two judges compare with gold answers. The other metrics, RAGAS's four (Es et al., 2024), need none: groundedness, there
faithfulness, is the share of the answer's statements that the passages support; context recall the same of a gold
answer; context precision asks which passages help, and is higher where those stand first.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import Step
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.for_dspy import answer_of, evidence_of, gold_of
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.signatures.judging import (
    GradeAnswer,
    JudgeAnswer,
    JudgeListAnswer,
    JudgePassages,
    JudgeRelevance,
    JudgeSupport,
)

RIGHT_GRADE, GRADES = 4, 5
"""Grades from 4 on count as right (QA search paper, section 5); the best is 5."""


class JudgedMetric(SavableModule):
    """A score in [0, 1] that a model gives an answered question."""

    signature: ClassVar[type[dspy.Signature] | None] = None

    def __init__(self) -> None:
        super().__init__()
        if self.signature is not None:
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
        """The score, with DSPy's own errors."""
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


class _AgainstGold(JudgedMetric):
    """Compares with gold answers: called as a metric of DSPy is, it returns a prediction with `score`."""

    @staticmethod
    def is_defined(example: Any, prediction: Any) -> bool:
        return bool(example.answers)

    def judged(self, example: Any, prediction: Any) -> float:
        return float(self(example, prediction).score) if answer_of(prediction).strip() else 0.0


class BinaryJudge(_AgainstGold):
    """1.0 if the answer means the same as a gold one (or, for a list, covers most items), else 0.0.

    >>> with dspy.context(lm=lm):  # doctest: +SKIP
    ...     BinaryJudge()(dspy.Example(question="Which city?", answer="Oslo"), dspy.Prediction(answer="In Oslo.")).score
    1.0
    """

    def __init__(self) -> None:
        super().__init__()
        self.judge = Step(JudgeAnswer)
        self.judge_list = Step(JudgeListAnswer)

    async def aforward(self, example: Any, prediction: Any) -> dspy.Prediction:
        asked = {"question": example.question, "answer": answer_of(prediction)}
        if items := getattr(example, "answer_items", None):
            reply = await call(self.judge_list, **asked, reference_items=[list(synonyms) for synonyms in items])
        else:
            reply = await call(self.judge, **asked, reference_answers=list(gold_of(example)))
        return dspy.Prediction(score=float(reply.correct))

    forward = blocking(aforward)


class RubricJudge(_AgainstGold):
    """Grades 1 to 5; the score is 1.0 from grade 4 on, else 0.0. The prediction has `grade` and `feedback`, too.

    >>> with dspy.context(lm=lm):  # doctest: +SKIP
    ...     RubricJudge()(dspy.Example(question="Which city?", answer="Oslo"), dspy.Prediction(answer="In Oslo.")).grade
    5
    """

    def __init__(self) -> None:
        super().__init__()
        self.grade = Step(GradeAnswer)

    async def aforward(self, example: Any, prediction: Any) -> dspy.Prediction:
        gold, answer = list(gold_of(example)), answer_of(prediction)
        reply = await call(self.grade, question=example.question, reference_answers=gold, answer=answer)
        score = float(reply.grade >= RIGHT_GRADE)
        return dspy.Prediction(score=score, grade=reply.grade, feedback=reply.feedback)

    forward = blocking(aforward)


class Groundedness(JudgedMetric):
    """Share of the answer's statements that the retrieved passages support."""

    signature = JudgeSupport

    def judged(self, example: Any, prediction: Any) -> float:
        answer = str(prediction.answer)
        return self._supported(example.question, evidence_of(example, prediction), answer) if answer.strip() else 0.0


class AnswerRelevance(JudgedMetric):
    """How well the answer responds to the question: grades 1 to 5, as 0 to 1."""

    signature = JudgeRelevance

    def judged(self, example: Any, prediction: Any) -> float:
        answer = str(prediction.answer)
        if not answer.strip():
            return 0.0
        return (int(self.judge(question=example.question, answer=answer).grade) - 1) / (GRADES - 1)


class ContextPrecision(JudgedMetric):
    """Mean precision at the places of the passages that help; 0.0 where none does.

    Helpful to the gold answer where there is one, else to the answer that was given.
    """

    signature = JudgePassages

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

    signature = JudgeSupport

    @staticmethod
    def is_defined(example: Any, prediction: Any) -> bool:
        return bool(example.answers)

    def judged(self, example: Any, prediction: Any) -> float:
        return self._supported(example.question, evidence_of(example, prediction), example.answers[0])


JUDGED: Mapping[str, type[JudgedMetric]] = {
    "judge": BinaryJudge,
    "rubric": RubricJudge,
    "right": RubricJudge,
    "groundedness": Groundedness,
    "answer_relevance": AnswerRelevance,
    "context_precision": ContextPrecision,
    "context_recall": ContextRecall,
}
""" Metrics of the role judge by name. "right" is a rubric's 4 or 5, or, where an answer was prepared, that it is the
question's own (QA search paper)."""
NO_EMBEDDED = tuple(JUDGED)[3:]
"""Those that the embedded model, which is no language model, cannot stand in for."""
