"""Says what each tool returns: short records with ids to go on with, and an offset where something was cut.

No slots: the SDK, which makes a JSON schema of each record, would take their descriptors for defaults.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from kraq_dspy.records import Chunk, Hit, Question

T = TypeVar("T")
SNIPPET = 700
"""Characters of a passage, a summary or a description; `read_document` gives all of a text."""


@dataclass(frozen=True)
class Passage:
    """`text` is cut where `is_cut`: read_document(chunk_id) goes on from its beginning."""

    chunk_id: str
    document_id: str
    title: str
    text: str
    is_cut: bool
    score: float
    why: str
    query: str

    @classmethod
    def of(cls, hit: Hit) -> "Passage":
        chunk = hit.chunk
        text = shortened(chunk.text)
        cut = text != chunk.text
        return cls(chunk.id, chunk.document_id, chunk.title, text, cut, round(hit.score, 4), hit.why, hit.query)


@dataclass(frozen=True)
class AskResult:
    """`n_passages` were found for the answer; `evidence` has the first of them. The documents answer
    `next_questions`, too."""

    answer: str
    program: str
    model: str
    evidence: list[Passage]
    n_passages: int
    next_questions: list[str]
    seconds: float


@dataclass(frozen=True)
class SearchResult:
    """`total` counts what was found, not what there is."""

    passages: list[Passage]
    total: int
    next_offset: int | None


@dataclass(frozen=True)
class StoredQuestion:
    """`similarity` to the topic is a cosine; None where there was no topic."""

    question_id: str
    text: str
    level: int
    community_id: str | None
    n_documents: int
    similarity: float | None

    @classmethod
    def of(cls, question: Question, similarity: float | None = None) -> "StoredQuestion":
        rounded = None if similarity is None else round(similarity, 3)
        n_documents = len(question.document_ids)
        return cls(question.id, question.text, question.level, question.community_id, n_documents, rounded)


@dataclass(frozen=True)
class QuestionsResult:
    questions: list[StoredQuestion]
    next_offset: int | None


@dataclass(frozen=True)
class Named:
    """An entity or a community by its id, with the name or title that a reader knows it by."""

    id: str
    name: str


@dataclass(frozen=True)
class Span:
    """A passage without its text."""

    chunk_id: str
    document_id: str
    title: str

    @classmethod
    def of(cls, chunk: Chunk) -> "Span":
        return cls(chunk.id, chunk.document_id, chunk.title)


@dataclass(frozen=True)
class CommunityResult:
    """`next_offset` goes on in all three lists: children, entities and passages."""

    community_id: str
    level: int
    title: str
    summary: str
    findings: list[str]
    questions: list[StoredQuestion]
    parent: Named | None
    children: list[Named]
    entities: list[Named]
    passages: list[Span]
    n_children: int
    n_entities: int
    n_passages: int
    next_offset: int | None


@dataclass(frozen=True)
class Neighbour:
    """`sentence` reads from the subject to the object, whichever of them the neighbour is."""

    entity_id: str
    name: str
    sentence: str
    description: str
    weight: float
    chunk_ids: list[str]


@dataclass(frozen=True)
class NeighboursResult:
    """`others` have the same name; ask for one of them by its id."""

    entity_id: str
    name: str
    type: str
    description: str
    community_id: str | None
    neighbours: list[Neighbour]
    total: int
    next_offset: int | None
    others: list[Named]


@dataclass(frozen=True)
class DocumentResult:
    """`text` is characters `offset` to `offset + len(text)` of `total_characters`."""

    document_id: str
    title: str
    source: str
    text: str
    offset: int
    total_characters: int
    next_offset: int | None


def page(items: Sequence[T], offset: int, limit: int) -> tuple[list[T], int | None]:
    """`limit` items from `offset` on, and the offset of the next page; None for the last one."""
    end = offset + limit
    return list(items[offset:end]), end if end < len(items) else None


def shortened(text: str, length: int = SNIPPET) -> str:
    """At most `length` characters, cut between words where there are any, with "…" where it was cut."""
    if len(text) <= length:
        return text
    kept = text[: length - 1]
    return f"{kept[: kept.rfind(' ')] if ' ' in kept[length // 2 :] else kept}…"
