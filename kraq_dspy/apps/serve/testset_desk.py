"""Holds what the owner of a served index reviews: a team's own questions, and a test set in its file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.questions import FOUND, QuestionColumns, read_questions
from kraq_dspy.exam.review import ReviewedTestset
from kraq_dspy.records import TestsetRow


@dataclass
class TestsetDesk:
    """A team's own questions, a test set under review, and rows that were offered; any of them may be absent."""

    __test__ = False

    questions: Sequence[Example] = ()
    testset: ReviewedTestset | None = None
    offered: dict[str, TestsetRow] = field(default_factory=dict)

    @classmethod
    def of(cls, questions: Path | None, testset: Path | None, columns: QuestionColumns = FOUND) -> "TestsetDesk | None":
        """The desk with what these files hold; None without any. Raises EvaluationError for one that cannot be read."""
        if questions is None and testset is None:
            return None
        examples = read_questions(questions, columns) if questions is not None else []
        return cls(examples, ReviewedTestset(testset) if testset is not None else None)
