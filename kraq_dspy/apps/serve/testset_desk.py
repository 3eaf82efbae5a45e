"""Holds what the owner of a served index works on: questions, a test set, and labels of human questions."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kraq_dspy.eval.columns import FOUND, QuestionColumns
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.labeling import Labeling, Sitting
from kraq_dspy.eval.questions import read_questions
from kraq_dspy.records import TestsetRow
from kraq_dspy.testset.review import ReviewedTestset
from kraq_dspy.workspace import Workspace


@dataclass
class LabelingDesk:
    """Human questions, the file of their labels, how many to label in all, and what was done in this process.

    One request at a time works on it: a label reads the file and writes it.
    """

    questions: Sequence[Example]
    out: Path
    n: int
    sitting: Sitting = field(default_factory=Sitting)
    summary: str = "no question was shown."
    n_left: int = 0
    n_labeled: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def over(self, space: Workspace) -> Labeling:
        """Raises EvaluationError as `Labeling` does."""
        return Labeling(space, self.questions, self.out, n=self.n)


@dataclass
class TestsetDesk:
    """A team's own questions, a test set under review, rows that were offered, and questions that are labeled; any of
    them may be absent."""

    __test__ = False

    questions: Sequence[Example] = ()
    testset: ReviewedTestset | None = None
    offered: dict[str, TestsetRow] = field(default_factory=dict)
    labels: LabelingDesk | None = None

    @classmethod
    def of(cls, questions: Path | None, testset: Path | None, columns: QuestionColumns = FOUND) -> "TestsetDesk | None":
        """The desk with what these files hold; None without any. Raises EvaluationError for one that cannot be read."""
        if questions is None and testset is None:
            return None
        examples = read_questions(questions, columns) if questions is not None else []
        return cls(examples, ReviewedTestset(testset) if testset is not None else None)
