"""Writes the rows of a test set: of a question with its gold, and of one that supposes what is not so."""

import dataclasses
import random
from collections import defaultdict
from collections.abc import Sequence

from kraq_dspy.eval.testset_questions import OF_ONE_FACT, AskedQuestion
from kraq_dspy.eval.testset_steps import TestsetSteps
from kraq_dspy.programs.testset import kinds
from kraq_dspy.programs.testset.asking import SupposeOfAnother
from kraq_dspy.programs.testset.difficulty import overlap
from kraq_dspy.programs.testset.gold import Pool, nearness
from kraq_dspy.programs.testset.materials import Corpus
from kraq_dspy.records import Entity, GoldPassage, TestsetRow, content_id
from kraq_dspy.steps.direct import Item

CHANGE = "change"
SAID = 0.9
"""Share of what a question supposes that one sentence has which says it."""


def row_of(question: AskedQuestion, pool: Pool, passages: Sequence[GoldPassage], *, model: str) -> TestsetRow:
    """Write the row of a question; its kind says where the answers and the documents go."""
    kind = question.material.kind
    documents = tuple(dict.fromkeys(passage.document_id for passage in passages))
    texts = [chunk.passage for chunk in question.material.chunks]
    checks = (*question.checks, "one answer") if kind in OF_ONE_FACT else question.checks

    row = TestsetRow(
        id=_row_id(kind, question.question),
        question=question.question,
        type=kind,
        answers=question.answers,
        supporting_ids=documents,
        passages=tuple(passages),
        community_id=question.material.community_id,
        community_level=question.material.community_level,
        overlap=round(overlap(question.question, texts), 3),
        solved_by=pool.solved_by(documents),
        model=model,
        checks=checks,
    )

    if kind == kinds.LIST:
        items = tuple((item,) for item in question.answers)
        return dataclasses.replace(row, answer_items=items)
    if kind == kinds.BROAD:
        whole_answer = ". ".join(question.answers)
        return dataclasses.replace(row, answers=(whole_answer,), nuggets=question.answers)
    if kind == kinds.UNANSWERABLE:
        return dataclasses.replace(row, answers=(), supporting_ids=(), hidden_documents=documents, solved_by=())
    return row


class FalsePremises:
    """Changes a name in questions, so that they suppose what no passage of the corpus says."""

    def __init__(self, steps: TestsetSteps, corpus: Corpus, *, seed: int) -> None:
        self.steps = steps
        self.corpus = corpus
        self.seed = seed
        self._by_type: defaultdict[str, list[Entity]] = defaultdict(list)
        self._by_name: dict[str, Entity] = {}
        for entity in corpus.entities:
            self._by_type[entity.type].append(entity)
            self._by_name |= dict.fromkeys(entity.names, entity)

    async def rows(
        self, questions: Sequence[AskedQuestion], rows: Sequence[TestsetRow]
    ) -> list[tuple[TestsetRow, str]]:
        """Return rows of the questions about another name, each with the id of what it was asked of.

        `rows` are those of the questions as they were asked, in the same order.
        """
        chance = random.Random(f"names {self.seed}")
        items = []
        for question in questions:
            swap = self._swap(question, chance)
            if swap is None:
                self.steps.rejected["names nothing that could be another"] += 1
                continue
            name, other = swap
            inputs = {"question": question.question, "name": name, "other": other}
            items.append(Item(question.id, inputs))
        replies = await self.steps.outcomes(CHANGE, self.steps.writer, SupposeOfAnother(), items)

        changed_rows = []
        for question, row in zip(questions, rows, strict=True):
            reply = replies.get(question.id)
            if reply is None:
                continue
            if reply.rejected or self._is_said(reply.question):
                self.steps.rejected[reply.rejected or "is said of the other name, too"] += 1
            else:
                changed_rows.append((_row_of_another(row, reply.question), question.source))
        return changed_rows

    def _swap(self, question: AskedQuestion, chance: random.Random) -> tuple[str, str] | None:
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

    def _is_said(self, question: str) -> bool:
        """Whether any passage of the corpus has nearly all that the question supposes in one sentence."""
        return any(nearness(question, chunk.passage) >= SAID for chunk in self.corpus.chunks)


def _row_of_another(row: TestsetRow, question: str) -> TestsetRow:
    """Return the row with a question about another name, which nothing answers."""
    return dataclasses.replace(
        row,
        id=_row_id(row.type, question),
        question=question,
        answers=(),
        supporting_ids=(),
        passages=(),
        solved_by=(),
        checks=(*row.checks, "absent from the corpus"),
    )


def _row_id(kind: str, question: str) -> str:
    return content_id("testset", kind, question)[:16]


def _stand_together(entity: Entity, other: Entity) -> bool:
    """Whether a passage names both."""
    return not set(entity.chunk_ids).isdisjoint(other.chunk_ids)
