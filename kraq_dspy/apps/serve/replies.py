"""Views of what HTTP alone answers, page by page; those that other doors answer as well stand in `apps/views.py`."""

from pydantic import Field

from kraq_dspy.apps.views import CommunityBrief, EntityBrief, FoundPassage, Passages, Question, SuggestedQuestion, View

BEGINNING = 300
"""Characters of an answer that a list of entries shows."""


class Count(View):
    level: int
    communities: int
    questions: int


class ProgramOption(View):
    default: str | int | float | bool | None
    help: str


class Program(View):
    """`prepared_by` are the commands that make what it looks up."""

    name: str
    help: str
    takes_retriever: bool
    prepared_by: list[str]
    options: dict[str, ProgramOption]


class Retriever(View):
    name: str
    help: str


class Status(View):
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
    faq: dict[str, int] | None
    default_program: str
    default_retriever: str
    programs: list[Program]
    retrievers: list[Retriever]
    can_ask: bool


class Questions(View):
    total: int
    offset: int
    items: list[Question]


class Starters(View):
    items: list[SuggestedQuestion]


class Communities(View):
    total: int
    offset: int
    items: list[CommunityBrief]


class Link(View):
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


class Edge(View):
    source: str
    target: str
    predicate: str
    weight: float


class Graph(View):
    nodes: list[Node]
    edges: list[Edge]
    n_left_out: int


class Found(View):
    """Only the kinds that were looked for."""

    query: str
    questions: list[Question] = Field(default_factory=list)
    entities: list[EntityBrief] = Field(default_factory=list)
    passages: list[FoundPassage] = Field(default_factory=list)


class FaqItem(View):
    """An entry with the beginning of its answer."""

    number: int
    question: str
    status: str
    origin: str
    asked: int
    version: int
    answer: str


class FaqItems(View):
    exists: bool
    counts: dict[str, int]
    total: int
    offset: int
    items: list[FaqItem]


class Health(View):
    status: str
