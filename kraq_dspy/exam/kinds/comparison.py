"""Asks which of two things is more of something; each is told of in a passage of its own."""

from collections import defaultdict
from collections.abc import Sequence

from kraq_dspy import signatures
from kraq_dspy.exam.corpus import Corpus
from kraq_dspy.exam.faults import fault_in_answers
from kraq_dspy.exam.kinds.kind import Kind
from kraq_dspy.exam.material import Material
from kraq_dspy.records import Chunk


class Comparison(Kind):
    """A question that compares two things of one type, and names both."""

    name = "comparison"
    what = "Two things are compared, each told of in a passage of its own."
    share = 0.05
    signature = signatures.AskComparison
    shortened = ("first_passage", "second_passage")
    is_pooled = False

    def materials(self, corpus: Corpus) -> list[Material]:
        """Pairs of things of one type and one community that have passages of their own."""
        alike: defaultdict[tuple[str, str], list[tuple[str, Chunk]]] = defaultdict(list)
        for entity in corpus.entities:
            chunk = corpus.passage_about.get(entity.name)
            if chunk is not None and chunk.id in entity.chunk_ids:
                community = corpus.community_of.get(chunk.id)
                alike[entity.type, community.id if community else ""].append((entity.name, chunk))

        materials = []
        for named_chunks in alike.values():
            pairs = zip(named_chunks[::2], named_chunks[1::2], strict=False)
            for (first_name, first), (second_name, second) in pairs:
                if first.document_id == second.document_id:
                    continue
                inputs = {
                    "first_passage": first.passage,
                    "second_passage": second.passage,
                    "names": [first_name, second_name],
                }
                materials.append(Material("", "", inputs, (first, second)))
        return materials

    def fault_in_answers(self, question: str, answers: Sequence[str], texts: Sequence[str]) -> str:
        return fault_in_answers(question, answers, texts, may_be_named=True)
