"""Asks about something that is not so: a question for a fact with the name of another thing in it."""

import dataclasses
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kraq_dspy.exam.gold_finder import nearness
from kraq_dspy.exam.kinds.fact import Fact
from kraq_dspy.exam.material import AskedQuestion, row_id
from kraq_dspy.exam.rewording import SupposeOfAnother
from kraq_dspy.records import PHRASE, Chunk, Entity, TestsetRow
from kraq_dspy.steps.direct import Item

if TYPE_CHECKING:
    from kraq_dspy.exam.run import ExamRun

CHANGE = "change"
SAID = 0.9
"""Share of what a question supposes that one sentence has which says it."""


class FalsePremise(Fact):
    """A question that supposes of one thing what the corpus says of another."""

    name = "false_premise"
    what = "Nothing answers, since something is supposed of another name that no passage says of it."
    share = 0.05
    has_answer = False

    async def rows(
        self, run: "ExamRun", questions: Sequence[AskedQuestion], rows: Sequence[TestsetRow]
    ) -> list[tuple[TestsetRow, str]]:
        """Return rows of the questions about another name; what some passage does say of that name is left out."""
        things = _Things(run.corpus.entities)
        chance = random.Random(f"names {run.seed}")
        items = []
        for question in questions:
            swap = things.swap(question, chance)
            if swap is None:
                run.steps.rejected["names nothing that could be another"] += 1
                continue
            name, other = swap
            items.append(Item(question.id, {"question": question.question, "name": name, "other": other}))
        replies = await run.steps.outcomes(CHANGE, run.steps.writer, SupposeOfAnother(), items)

        changed_rows = []
        for question, row in zip(questions, rows, strict=True):
            reply = replies.get(question.id)
            if reply is None:
                continue
            if reply.rejected or is_said(reply.question, run.corpus.chunks):
                run.steps.rejected[reply.rejected or "is said of the other name, too"] += 1
            else:
                changed_rows.append((_row_of_another(row, reply.question), run.gold.source_of(question)))
        return changed_rows


def is_said(question: str, chunks: Sequence[Chunk]) -> bool:
    """Whether any passage has nearly all that the question supposes in one sentence."""
    return any(nearness(question, chunk.passage) >= SAID for chunk in chunks)


class _Things:
    """The entities of a corpus that have names, by their type and by their names."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        by_type: defaultdict[str, list[Entity]] = defaultdict(list)
        by_name: dict[str, Entity] = {}
        for entity in entities:
            if entity.type == PHRASE:
                continue  # two phrases are not alike because both are phrases
            by_type[entity.type].append(entity)
            by_name |= dict.fromkeys(entity.names, entity)
        self._by_type: Mapping[str, Sequence[Entity]] = by_type
        self._by_name = by_name

    def swap(self, question: AskedQuestion, chance: random.Random) -> tuple[str, str] | None:
        """Draw the name of another thing for one that the question names; None if there is none.

        The two are of one type, and no passage names both.
        """
        about = question.material.inputs["about"]
        names = [name for name in about if name in question.question and name in self._by_name]
        if not names:
            return None

        name = max(names, key=len)
        entity = self._by_name[name]
        others = [other for other in self._by_type[entity.type] if other.id != entity.id]
        if not others:
            return None

        other = chance.choice(others)
        return None if _stand_together(other, entity) else (name, other.name)


def _stand_together(entity: Entity, other: Entity) -> bool:
    """Whether a passage names both."""
    return not set(entity.chunk_ids).isdisjoint(other.chunk_ids)


def _row_of_another(row: TestsetRow, question: str) -> TestsetRow:
    """Return the row with a question about another name, which nothing answers."""
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
