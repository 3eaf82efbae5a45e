"""Asks what one passage answers."""

from collections.abc import Sequence
from typing import ClassVar

from kraq_dspy import signatures
from kraq_dspy.exam.corpus import Corpus
from kraq_dspy.exam.kinds.kind import Kind
from kraq_dspy.exam.material import Material


class Fact(Kind):
    """A question that one passage answers with a few words."""

    name = "fact"
    what = "One passage answers."
    share = 0.2
    signature = signatures.AskFact
    shortened = ("passage",)
    is_of_one_fact: ClassVar[bool] = True

    def materials(self, corpus: Corpus) -> list[Material]:
        """Each passage, with the names that it tells of."""
        return [
            Material(
                "", "", {"passage": chunk.passage, "about": self.about(corpus.names_of.get(chunk.id, []))}, (chunk,)
            )
            for chunk in corpus.chunks
        ]

    def about(self, names: Sequence[str]) -> list[str]:
        """The names of a passage, in the order in which the step that asks sees them."""
        return list(names)
