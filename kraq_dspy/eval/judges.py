"""Lets language models judge answers. A reply that is no verdict is a failure with a reason, never a silent 0.

Two judges compare with gold answers. Groundedness, the faithfulness of RAGAS (Es et al., 2024), needs none: it is the
share of the answer's statements that the passages support.
"""

from collections.abc import Mapping
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import Step
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.for_dspy import answer_of, evidence_of, gold_of
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.signatures.judging import GradeAnswer, JudgeAnswer, JudgeListAnswer, JudgeSupport
from kraq_dspy.state import SavableModule

RIGHT_GRADE = 4
"""Grades from 4 to 5 count as right (QA search paper, section 5)."""


class JudgedMetric(SavableModule):
    """A score in [0, 1] that a model gives an answered question.

    Called as a metric of DSPy is, it returns a prediction with `score`. With `needs_gold` it compares with gold ones.
    """

    needs_gold = True

    def score(self, example: Any, prediction: Any) -> float:
        """Score one answered question, 0.0 where the answer is blank.

        Raises EvaluationError where the judge could not be asked or read.
        """
        if not answer_of(prediction).strip():
            return 0.0

        try:
            with dspy.context(adapter=KraqAdapter()):
                return float(self(example, prediction).score)
        except AdapterParseError as error:
            text = str(getattr(error, "lm_response", "") or error)
            raise EvaluationError(f"the judge's reply is no verdict: {text[:200]!r}") from error
        except LMError as error:
            raise EvaluationError(f"the judge could not be asked: {error}") from error

    def is_defined(self, example: Any) -> bool:
        """Whether there is anything to judge."""
        return bool(example.answers) or not self.needs_gold


class BinaryJudge(JudgedMetric):
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


class RubricJudge(JudgedMetric):
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
    """Share of the answer's statements that the retrieved passages support.

    >>> example = dspy.Example(question="Which city?", passages=["Oslo is in Norway."])
    >>> with dspy.context(lm=lm):  # doctest: +SKIP
    ...     Groundedness()(example, dspy.Prediction(answer="Oslo, in Norway.")).score
    1.0
    """

    needs_gold = False

    def __init__(self) -> None:
        super().__init__()
        self.judge = Step(JudgeSupport)

    async def aforward(self, example: Any, prediction: Any) -> dspy.Prediction:
        passages, answer = evidence_of(example, prediction), answer_of(prediction)
        reply = await call(self.judge, question=example.question, passages=passages, answer=answer)
        if not reply.statements:
            raise EvaluationError("the judge found no statement in the answer")
        return dspy.Prediction(score=sum(bool(each.supported) for each in reply.statements) / len(reply.statements))

    forward = blocking(aforward)


JUDGED: Mapping[str, type[JudgedMetric]] = {
    "judge": BinaryJudge,
    "rubric": RubricJudge,
    "right": RubricJudge,
    "groundedness": Groundedness,
}
""" Metrics of the role judge by name. "right" is a rubric's 4 or 5, or, where an answer was prepared, that it is the
question's own (QA search paper)."""
