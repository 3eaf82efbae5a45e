"""Collects the rows of a data set: the index's questions with the catalogue's answers and the passages behind them."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kraq_dspy.asset.store.catalogue import question_key
from kraq_dspy.asset.store.index import Index
from kraq_dspy.records import CatalogueEntry, Chunk, Document, Question


@dataclass(frozen=True, slots=True)
class Row:
    """A question; its answer, or None where nobody gave one; its evidence, and all documents that this comes from.

    The documents of a KRAQ question are those of its community. The sources of its answer do not count among them: they
    are all that a program saw, used or not, and would tie a whole corpus together.

    `level` and `community_id` are those of a KRAQ question, None for another. `difficulty` is read off the level, not
    measured: "hard" for the broadest, whose evidence lies far apart, "easy" for the narrowest and for what one passage
    answers, "medium" between. `origin` is "kraq" or the catalogue's word for where the question came from.
    """

    id: str
    question: str
    answer: str | None
    evidence: tuple[Chunk, ...]
    document_ids: tuple[str, ...]
    community_id: str | None
    level: int | None
    difficulty: str
    origin: str
    model: str


def collect_rows(
    index: Index, entries: Sequence[CatalogueEntry], *, unanswered: bool, passages: int, left_out: Counter[str]
) -> Iterator[Row]:
    """KRAQ questions first, then what the catalogue has besides; at most `passages` of evidence each.

    `entries` are those that may be used. A question without an answer among them is left out unless `unanswered`, one
    without a document always; `left_out` counts the reasons.
    """
    answers = {question_key(entry.question): entry for entry in entries if entry.answer}
    deepest = index.deepest_level()
    for question in index.questions(source="kraq"):
        entry = answers.pop(question_key(question.text), None)
        if entry is None and not unanswered:
            left_out["without an answer"] += 1
        elif not question.chunk_ids:
            left_out["without evidence"] += 1
        else:
            yield _of_question(index, question, entry, deepest, passages)
    present = set(index.ids(Document))
    for entry in answers.values():
        document_ids = [source.document_id for source in entry.sources if source.document_id in present]
        if document_ids:
            yield _of_entry(index, entry, document_ids, passages)
        else:
            left_out["without evidence"] += 1


def _of_question(index: Index, question: Question, entry: CatalogueEntry | None, deepest: int, passages: int) -> Row:
    return Row(
        id=question.id,
        question=question.text,
        answer=entry.answer if entry else None,
        evidence=tuple(index.chunks_by_id(question.chunk_ids[:passages])),
        document_ids=tuple(sorted(question.document_ids)),
        community_id=question.community_id,
        level=question.level,
        difficulty=difficulty_of(question.level, deepest),
        origin="kraq",
        model=question.model,
    )


def _of_entry(index: Index, entry: CatalogueEntry, document_ids: Collection[str], passages: int) -> Row:
    """Its evidence is what holds the answer word for word; else the documents from their beginning."""
    chunks = [chunk for each in document_ids for chunk in index.all(Chunk, document_id=each)]
    holding = [chunk for chunk in chunks if entry.answer.casefold() in chunk.text.casefold()]
    return Row(
        id=f"catalogue-{entry.number}",
        question=entry.question,
        answer=entry.answer,
        evidence=tuple((holding or chunks)[:passages]),
        document_ids=tuple(sorted(document_ids)),
        community_id=None,
        level=None,
        difficulty="easy",
        origin=entry.origin,
        model="",
    )


def difficulty_of(level: int, deepest: int) -> str:
    """ "medium" where there is but one level."""
    if deepest <= 0:
        return "medium"
    return "hard" if level == 0 else "easy" if level == deepest else "medium"
