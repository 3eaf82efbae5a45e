"""Asks for several things, each of which stands in a passage of its own."""

import dataclasses

from kraq_dspy import signatures
from kraq_dspy.exam.corpus import Corpus
from kraq_dspy.exam.gold_finder import says_answer
from kraq_dspy.exam.kinds.kind import Kind
from kraq_dspy.exam.material import AskedQuestion, Material
from kraq_dspy.records import Chunk, TestsetRow

LISTED = range(2, 9)
"""Passages that a list is asked of."""


class ListOf(Kind):
    """A question whose answer is a list; the passages have an item each."""

    name = "list"
    what = "Each of several passages has an item of the answer."
    share = 0.05
    signature = signatures.AskList
    shortened = ("passages",)
    fewest_answers = 2

    def materials(self, corpus: Corpus) -> list[Material]:
        """The passages of a few documents that name the same thing."""
        materials = []
        for entity in corpus.entities:
            chunks = corpus.chunks_of(entity.chunk_ids)[: LISTED.stop - 1]
            if len({chunk.document_id for chunk in chunks}) in LISTED:
                inputs = {"passages": [chunk.passage for chunk in chunks], "shared": entity.name}
                materials.append(Material("", "", inputs, tuple(chunks)))
        return materials

    def is_source(self, question: AskedQuestion, chunk: Chunk) -> bool:
        return any(says_answer(answer, chunk.passage) for answer in question.answers)

    def row(self, row: TestsetRow, question: AskedQuestion) -> TestsetRow:
        return dataclasses.replace(row, answer_items=tuple((item,) for item in question.answers))
