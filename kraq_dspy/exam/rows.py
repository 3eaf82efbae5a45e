"""Writes the row of a question with its gold."""

from collections.abc import Sequence

from kraq_dspy.exam.difficulty import overlap
from kraq_dspy.exam.gold_finder import Pool
from kraq_dspy.exam.kinds import KINDS
from kraq_dspy.exam.material import AskedQuestion, row_id
from kraq_dspy.records import GoldPassage, TestsetRow


def row_of(question: AskedQuestion, pool: Pool, passages: Sequence[GoldPassage], *, model: str) -> TestsetRow:
    """Write the row of a question; its kind says where the answers and the documents go."""
    kind = KINDS[question.material.kind]
    documents = tuple(dict.fromkeys(passage.document_id for passage in passages))
    texts = [chunk.passage for chunk in question.material.chunks]
    checks = (*question.checks, "one answer") if kind.is_of_one_fact else question.checks

    row = TestsetRow(
        id=row_id(kind.name, question.question),
        question=question.question,
        type=kind.name,
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
    return kind.row(row, question)
