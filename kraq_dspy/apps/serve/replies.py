"""Says what each address answers, for /openapi.json. A test holds what is really answered against these."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict


class Reply(BaseModel):
    """A JSON object with these fields and no others."""

    model_config = ConfigDict(extra="forbid")


class Count(Reply):
    level: int
    communities: int
    questions: int


class ProgramOption(Reply):
    default: str | int | float | bool | None
    help: str


class Program(Reply):
    """`prepared_by` are the commands that make what it looks up."""

    name: str
    help: str
    takes_retriever: bool
    prepared_by: list[str]
    options: dict[str, ProgramOption]


class Retriever(Reply):
    name: str
    help: str


class Status(Reply):
    """What an index is, what it holds, and what can be asked. `indexes` are the names that the caller may ask."""

    index: str
    indexes: list[str]
    version: str
    complete: bool
    updated_at: str
    encoder: str
    models: list[str]
    counts: dict[str, int]
    levels: list[Count]
    edit: bool
    catalogue: dict[str, int] | None
    default_program: str
    default_retriever: str
    programs: list[Program]
    retrievers: list[Retriever]
    can_ask: bool


class Question(Reply):
    """`topic` stands for the text where no model wrote a question of a broad community."""

    id: str
    text: str
    topic: str
    level: int
    community_id: str | None
    n_passages: int
    n_documents: int


class Questions(Reply):
    total: int
    offset: int
    items: list[Question]


class SuggestedQuestion(Reply):
    """With the community, the passage and the document that it leads to."""

    text: str
    question_id: str
    community_id: str | None
    chunk_id: str
    document_id: str
    title: str


class Starters(Reply):
    items: list[SuggestedQuestion]


class CommunityBrief(Reply):
    id: str
    level: int
    parent_id: str | None
    n_children: int
    n_entities: int
    n_passages: int
    title: str
    question: str
    topic: str


class Communities(Reply):
    total: int
    offset: int
    items: list[CommunityBrief]


class Mention(Reply):
    """Where a text names an entity, in characters."""

    start: int
    end: int
    entity_id: str


class Passage(Reply):
    id: str
    document_id: str
    title: str
    position: int
    text: str
    mentions: list[Mention]


class Passages(Reply):
    total: int
    offset: int
    items: list[Passage]


class FoundPassage(Passage):
    """`query` is what it was found with, `why` what leads to it."""

    score: float
    query: str
    why: str


class Finding(Reply):
    summary: str
    explanation: str


class CommunitySummary(Reply):
    title: str
    text: str
    findings: list[Finding]


class EntityBrief(Reply):
    id: str
    name: str
    type: str
    degree: int
    n_passages: int


class Community(CommunityBrief):
    """`path` are those above it, the broadest first."""

    path: list[CommunityBrief]
    children: list[CommunityBrief]
    summary: CommunitySummary | None
    entities: list[EntityBrief]
    passages: Passages


class Link(Reply):
    """`to` says whether it leads from the entity that was asked for to this one."""

    to: bool
    predicate: str
    description: str
    weight: float
    entity: EntityBrief


class Entity(EntityBrief):
    description: str
    names: list[str]
    claims: list[str]
    links: list[Link]
    communities: list[CommunityBrief]
    passages: Passages


class Node(EntityBrief):
    """`inside` says whether it is one of those that were asked for."""

    inside: bool


class Edge(Reply):
    source: str
    target: str
    predicate: str
    weight: float


class Graph(Reply):
    nodes: list[Node]
    edges: list[Edge]
    n_left_out: int


class Found(Reply):
    query: str
    questions: list[Question]
    entities: list[EntityBrief]
    passages: list[FoundPassage]


class Note(BaseModel):
    """What a program says of how it came to its answer."""

    model_config = ConfigDict(extra="allow")


class Usage(Reply):
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


class Answer(Reply):
    """`answerable` says whether the passages hold an answer, `refused` that none was given for that reason."""

    question: str
    standalone_question: str
    index: str
    program: str
    model: str
    answer: str
    refused: bool
    answerable: bool | None
    answerable_score: float | None
    hits: list[FoundPassage]
    notes: list[Note]
    next_questions: list[SuggestedQuestion]
    details: dict[str, Any]
    timings: dict[str, float]
    usage: Usage


class CatalogueItem(Reply):
    number: int
    question: str
    status: str
    origin: str
    asked: int
    version: int
    answer: str


class CatalogueItems(Reply):
    exists: bool
    counts: dict[str, int]
    total: int
    offset: int
    items: list[CatalogueItem]


class Health(Reply):
    status: str


REPLIES: Mapping[tuple[str, str], type[BaseModel]] = {
    ("get", "/api/status"): Status,
    ("get", "/api/questions"): Questions,
    ("get", "/api/starters"): Starters,
    ("get", "/api/communities"): Communities,
    ("get", "/api/communities/{id}"): Community,
    ("get", "/api/communities/{id}/passages"): Passages,
    ("get", "/api/communities/{id}/graph"): Graph,
    ("get", "/api/entities/{id}"): Entity,
    ("get", "/api/entities/{id}/passages"): Passages,
    ("get", "/api/entities/{id}/graph"): Graph,
    ("get", "/api/search"): Found,
    ("get", "/api/catalogue"): CatalogueItems,
    ("get", "/health"): Health,
    ("post", "/api/search"): Found,
    ("post", "/api/ask"): Answer,
}
"""By method and address; the others say no more than that they answer with JSON, and those of /v1 with OpenAI's."""
