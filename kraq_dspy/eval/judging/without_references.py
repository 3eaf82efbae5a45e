"""Lets a language model score answers and evidence where no gold answer is known: RAGAS's four (Es et al., 2024).

Groundedness, there faithfulness, is the share of the answer's statements that the passages support. Context recall is
the same of a gold answer. Context precision asks which passages help, and is higher where those stand first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.for_dspy import evidence_of
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.programs.shared.state import SavableModule

GRADES = 5


@dataclass(frozen=True)
class JudgedStatement:
    """One thing that an answer says, and whether the passages say so too."""

    statement: str
    supported: bool


class JudgeSupport(dspy.Signature):
    """Split the answer into the statements it makes, and decide of each whether the passages support it.

    A statement is supported if a reader of the passages alone would agree to it. What is true but not in the passages
    is not supported. Resolve pronouns, so that each statement stands for itself.
    """

    question: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    answer: str = dspy.InputField()
    statements: list[JudgedStatement] = dspy.OutputField(desc="at least one, unless the answer says nothing")


class JudgeRelevance(dspy.Signature):
    """Grade how well the answer responds to the question, whether or not it is true.

    5 answers just what was asked; 3 answers a part of it, or buries the answer among other things; 1 is about something
    else, or does not answer.
    """

    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    grade: Literal[1, 2, 3, 4, 5] = dspy.OutputField()


class JudgePassages(dspy.Signature):
    """Name the passages that help to arrive at the answer to the question.

    A passage helps if it states the answer or a fact on the way to it. One on the same subject without such a fact does
    not.
    """

    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    passages: list[str] = dspy.InputField(desc="numbered from 1")
    helpful: list[int] = dspy.OutputField(desc="numbers of passages; empty if none helps")


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
