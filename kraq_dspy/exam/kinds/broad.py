"""Asks what a group of passages tells together."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from kraq_dspy import signatures
from kraq_dspy.embedded.reading.together import groups_in
from kraq_dspy.exam.corpus import MOST_NAMES, Corpus, is_identifier
from kraq_dspy.exam.gold_finder import nearness
from kraq_dspy.exam.kinds.kind import Kind, said_of_names
from kraq_dspy.exam.material import AskedQuestion, Material
from kraq_dspy.records import Chunk, GoldPassage, TestsetRow, content_id

OF_COMMUNITY = range(3, 11)
"""Passages of a community that a broad question is asked of."""
TOGETHER, MOST_TOGETHER = range(2, 7), 8
"""Documents, and passages, that two names stand together in for a broad question about both."""
BY_FEW = range(2, 9)
"""Documents that one name stands in for a broad question about it."""
TOLD_BY = range(2, 9)
"""Passages that a broad question is answered by: of more, nobody knows whether the pool has all."""
NUGGET_SAID = 0.6
"""Share of a nugget's words that a passage has which says it."""


class Broad(Kind):
    """A question that takes most passages of a group to answer well; its answer is a list of statements (nuggets)."""

    name = "broad"
    what = "Most passages of a community have a part of the answer."
    share = 0.3
    signature = signatures.AskBroad
    shortened = ("passages",)
    is_read_again = False  # no two accounts of much are alike

    def materials(self, corpus: Corpus) -> list[Material]:
        """The passages of a small community, those whose statements go together, and those of few documents that name
        the same one or two things."""
        return _of_communities(corpus) + _of_statements(corpus) + _named_together(corpus) + _named_by_few(corpus)

    def fault_in_answers(self, question: str, answers: Sequence[str], texts: Sequence[str]) -> str:
        """Find nothing wrong: nuggets are statements in the model's own words."""
        return ""

    def is_source(self, question: AskedQuestion, chunk: Chunk) -> bool:
        return any(nearness(nugget, chunk.passage) >= NUGGET_SAID for nugget in question.answers)

    def answer_in(self, question: AskedQuestion, chunk: Chunk) -> str:
        return said_of_names(question, chunk)

    def lacks_gold(self, passages: Sequence[GoldPassage]) -> str:
        if len(passages) in TOLD_BY:
            return ""
        return "is told by one passage" if len(passages) < 2 else "is told by too many passages"

    def row(self, row: TestsetRow, question: AskedQuestion) -> TestsetRow:
        whole_answer = ". ".join(question.answers)
        return dataclasses.replace(row, answers=(whole_answer,), nuggets=question.answers)


def _of_communities(corpus: Corpus) -> list[Material]:
    materials = []
    for community in corpus.communities:
        chunks = corpus.chunks_of(community.chunk_ids)
        if len(chunks) in OF_COMMUNITY:
            names: Counter[str] = Counter()
            for chunk in chunks:
                names.update(corpus.names_of.get(chunk.id, ()))
            about = [name for name, _ in names.most_common(MOST_NAMES)]
            inputs = {"passages": [chunk.passage for chunk in chunks], "about": about}
            materials.append(Material("", "", inputs, tuple(chunks)))
    return materials


def _of_statements(corpus: Corpus) -> list[Material]:
    """Return passages of few documents whose statements go together, with what the statements name."""
    materials = []
    for group in groups_in(corpus.analyses):
        chunks = corpus.chunks_of(group.told)
        if len({chunk.document_id for chunk in chunks}) >= TOGETHER.start:
            inputs = {"passages": [chunk.passage for chunk in chunks], "about": list(group.names)}
            materials.append(Material("", "", inputs, tuple(chunks), group.names))
    return materials


def _named_by_few(corpus: Corpus) -> list[Material]:
    """Return passages of few documents that name the same thing.

    Two entities may have one name, as a person and a place: who asks by it means the passages of both.
    """
    chunk_ids_by_name: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for entity in corpus.entities:
        if not is_identifier(entity.name):
            chunk_ids_by_name[(entity.name,)] |= dict.fromkeys(entity.chunk_ids)

    passages = {name: corpus.chunks_of(chunk_ids) for name, chunk_ids in chunk_ids_by_name.items()}
    return _told_together(passages, BY_FEW)


def _named_together(corpus: Corpus) -> list[Material]:
    """Passages of few documents that name the same two things."""
    passages: defaultdict[tuple[str, ...], list[Chunk]] = defaultdict(list)
    for chunk in corpus.chunks:
        for pair in combinations(sorted(corpus.names_of.get(chunk.id, ())), 2):
            passages[pair].append(chunk)
    return _told_together(passages, TOGETHER)


def _told_together(passages: Mapping[tuple[str, ...], Sequence[Chunk]], by_documents: range) -> list[Material]:
    """Materials for what so many documents name, with the passages that do.

    Each passage proposes one of the names, or pairs of names. So a name in many passages comes up
    more often than one in passing, and a passage of many names no more often than others.
    """
    by_few: dict[tuple[str, ...], Sequence[Chunk]] = {}
    names_by_passage: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for names, chunks in passages.items():
        if len({chunk.document_id for chunk in chunks}) in by_documents and len(chunks) <= MOST_TOGETHER:
            by_few[names] = chunks
            for chunk in chunks:
                names_by_passage[chunk.id].append(names)

    put_forward: set[tuple[str, ...]] = set()
    for chunk_id, named in names_by_passage.items():
        _, names = min((content_id(chunk_id, *names), names) for names in named)
        put_forward.add(names)

    materials = []
    for names, chunks in by_few.items():
        if names in put_forward:
            inputs = {"passages": [chunk.passage for chunk in chunks], "about": list(names)}
            materials.append(Material("", "", inputs, tuple(chunks), names))
    return materials
