"""Asks a question for a fact whose documents are hidden from whoever is examined."""

import dataclasses
from collections.abc import Sequence

from kraq_dspy.exam.kinds.fact import Fact
from kraq_dspy.exam.material import AskedQuestion
from kraq_dspy.records import TestsetRow


class Unanswerable(Fact):
    """A fact whose documents are taken away when it is asked."""

    name = "unanswerable"
    what = "Nothing answers, since the documents that do are hidden."
    share = 0.15
    has_answer = False

    def about(self, names: Sequence[str]) -> list[str]:
        """The other way round, so that of several statements another one is asked than for a fact."""
        return list(names[::-1])

    def row(self, row: TestsetRow, question: AskedQuestion) -> TestsetRow:
        return dataclasses.replace(
            row, answers=(), supporting_ids=(), hidden_documents=row.supporting_ids, solved_by=()
        )
