"""Asks about something that is not so: a question for a fact of which one thing is changed."""

import dataclasses
import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kraq_dspy.exam.changes import Changes
from kraq_dspy.exam.kinds.fact import Fact
from kraq_dspy.exam.material import AskedQuestion, row_id
from kraq_dspy.exam.rewording import SupposeOfAnother
from kraq_dspy.records import TestsetRow
from kraq_dspy.steps.direct import Item

if TYPE_CHECKING:
    from kraq_dspy.exam.run import ExamRun

CHANGE = "change"


class FalsePremise(Fact):
    """A question for a fact with another name, year, number or kind of thing, of which the corpus does not say that."""

    name = "false_premise"
    what = "Nothing answers, since one thing of the question is other than any passage says."
    share = 0.05
    has_answer = False

    def about(self, names: Sequence[str]) -> list[str]:
        """From the second on, so that of several statements another one may be asked than for a fact."""
        return [*names[1:], *names[:1]]

    async def rows(
        self, run: "ExamRun", questions: Sequence[AskedQuestion], rows: Sequence[TestsetRow]
    ) -> list[tuple[TestsetRow, str]]:
        """Return rows of the questions with one thing changed; what some passage may say so is left out."""
        changes = Changes(run.corpus)
        chance = random.Random(f"names {run.seed}")
        items, changed_of = [], {}
        for question in questions:
            change = changes.of(question, chance)
            if change is None:
                run.steps.rejected["has nothing that could be another"] += 1
                continue
            changed_of[question.id] = change
            inputs = {"question": change.question, "name": change.name, "other": change.other}
            items.append(Item(question.id, inputs))
        replies = await run.steps.outcomes(CHANGE, run.steps.writer, SupposeOfAnother(), items)

        changed_rows = []
        for question, row in zip(questions, rows, strict=True):
            reply = replies.get(question.id)
            if reply is None:
                continue
            if reply.rejected:
                run.steps.rejected[reply.rejected] += 1
                continue
            text = changed_of[question.id].prefix + with_articles(reply.question)
            changed_rows.append((_row_of_another(row, text), run.gold.source_of(question)))
        return changed_rows


def with_articles(question: str) -> str:
    """The question with "a" or "an" as the next word has it.

    >>> with_articles("Who mended a old lamp?")
    'Who mended an old lamp?'
    """
    question = re.sub(r"\ba(?= [aeiou])(?! (?:one|uni|use|eu))", "an", question)
    return re.sub(r"\ban(?= [b-df-gj-np-tv-z])", "a", question)


def _row_of_another(row: TestsetRow, question: str) -> TestsetRow:
    """Return the row with a changed question, which nothing answers."""
    return dataclasses.replace(
        row,
        id=row_id(row.type, question),
        question=question,
        answers=(),
        supporting_ids=(),
        passages=(),
        solved_by=(),
        checks=(*row.checks, "absent from the corpus"),
    )
