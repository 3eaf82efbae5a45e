"""Decides about the rows of a test set, one at a time, in the file that holds them."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kraq_dspy.errors import EvaluationError
from kraq_dspy.records import APPROVED, NEW, REJECTED, TestsetRow, content_id
from kraq_dspy.testset.testset import Testset

DECIDED = (APPROVED, REJECTED)
Action = Literal["approve", "edit", "reject", "undo"]


@dataclass(frozen=True, slots=True)
class Correction:
    """What an edit puts in place of a row's question and answers."""

    question: str
    answers: tuple[str, ...]


class ReviewedTestset:
    """A test set in its file. Every decision is on the disk when it returns. Safe for threads.

    >>> review = ReviewedTestset("test.jsonl")  # doctest: +SKIP
    >>> review.decide(row.id, "approve", version_of(row)).status  # doctest: +SKIP
    'approved'

    A rejected row stays in the file, so that it does not come back; `kraq eval` leaves it out. Raises EvaluationError
    for a file that is no test set.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self.rows()  # raises for a file that is no test set

    def rows(self) -> tuple[TestsetRow, ...]:
        """The rows as they are in the file now; other programs may change it."""
        return Testset.load(self.path).rows

    def decide(self, row_id: str, action: Action, version: str, correction: Correction | None = None) -> TestsetRow:
        """The row as it is after the decision. An edit approves it.

        Raises EvaluationError for a row that is not there, one that is no longer as `version_of` said when it was
        looked at, and an edit without a question.
        """
        with self._lock:
            testset = Testset.load(self.path)
            row = next((each for each in testset if each.id == row_id), None)
            if row is None:
                raise EvaluationError(f"The test set has no row {row_id!r:.80}, or it was removed meanwhile.")
            if version_of(row) != version:
                raise EvaluationError("Somebody changed this row meanwhile. Look at it again.")

            decided = _decided(row, action, correction)
            rows = tuple(decided if each.id == row_id else each for each in testset)
            replace(testset, rows=rows).save(self.path)
        return decided

    def add(self, row: TestsetRow) -> TestsetRow:
        """Put a row behind the others, approved; one that is there already is approved."""
        with self._lock:
            approved = replace(row, status=APPROVED)
            Testset.load(self.path).with_row(approved).save(self.path)
        return approved


def version_of(row: TestsetRow) -> str:
    """Return 16 hexadecimal digits that change with the row's question, answers and status."""
    return content_id("row", row.id, row.question, row.status, *row.answers)[:16]


def with_decisions(made: Testset, before: Sequence[TestsetRow]) -> Testset:
    """A set that was made again, with what people decided before: approved, edited and rejected rows stay as they were.

    >>> row = TestsetRow("t1", "Who?", "fact")
    >>> with_decisions(Testset((row,)), [replace(row, status="rejected")]).rows[0].status
    'rejected'
    """
    decided = {row.id: row for row in before if row.status in DECIDED}
    rows = [decided.pop(row.id, row) for row in made]
    return replace(made, rows=(*rows, *decided.values()))


def _decided(row: TestsetRow, action: Action, correction: Correction | None) -> TestsetRow:
    if action != "edit":
        return replace(row, status={"approve": APPROVED, "reject": REJECTED, "undo": NEW}[action])
    if correction is None or not correction.question.strip():
        raise EvaluationError("An edit needs a question.")
    answers = tuple(answer.strip() for answer in correction.answers if answer.strip())
    return replace(row, question=correction.question.strip(), answers=answers, status=APPROVED)
