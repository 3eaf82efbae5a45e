"""Declares what requests may hold: the parameters of an address, or the body of what is posted."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kraq_dspy.workspace.suggesting import STARTERS

KINDS = ("questions", "entities", "passages")
"""What can be searched."""

BY_WORDS = "bm25"

QUESTION = 4000
"""Characters of a question."""

Words = Annotated[str, Field(max_length=QUESTION)]
Level = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(max_length=200)]


class Query(BaseModel):
    """The parameters of every request for data; `index` is the name of one, the first without
    it."""

    model_config = ConfigDict(extra="forbid")

    index: str | None = None


class PageQuery(Query):
    offset: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class QuestionsQuery(PageQuery):
    """`q` are words that a question must have."""

    level: Level | None = None
    q: Words = ""


class StartersQuery(Query):
    limit: Annotated[int, Field(ge=1, le=50)] = STARTERS


class CommunitiesQuery(PageQuery):
    """`telling` are those with a question or with others inside; `single` those of one passage, or not."""

    level: Level | None = None
    parent: str | None = None
    telling: bool = False
    single: bool | None = None


class GraphQuery(Query):
    """`limit` bounds the nodes."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 150


class SearchQuery(Query):
    """The last word of `q` may be unfinished. `limit` is for each of `kinds` (KINDS, with commas between)."""

    q: Words = ""
    limit: Annotated[int, Field(ge=1, le=50)] = 8
    kinds: str = ",".join(KINDS)
    retriever: Name = BY_WORDS


class FaqQuery(PageQuery):
    """ "waiting" is pending or stale."""

    status: Literal["waiting", "pending", "approved", "stale"] = "waiting"


class TurnRequest(BaseModel):
    """A question that was asked before, with its answer."""

    model_config = ConfigDict(extra="forbid")

    question: Words
    answer: Annotated[str, Field(max_length=100_000)] = ""


class AskRequest(Query):
    """A question, and what is to answer it; without a program, a prepared answer or the default program's.

    `history` holds the conversation before it, the oldest turn first. The server refuses questions
    that the documents do not answer, unless `no_refuse` is set.
    """

    question: Annotated[str, Field(min_length=1, max_length=QUESTION)]
    program: Name | None = None
    retriever: Name | None = None
    options: dict[str, int | float | bool | str | None] = {}
    stream: bool = False
    no_refuse: bool = False
    history: Annotated[list[TurnRequest], Field(max_length=100)] = []


class ReviewRequest(Query):
    """What somebody decided about an entry of the FAQ cache, of the version that was looked at."""

    action: Literal["approve", "edit", "reject"]
    version: Annotated[int, Field(ge=1)]
    answer: Annotated[str | None, Field(max_length=100_000)] = None
    document_ids: list[str] | None = None


class CoverageQuery(PageQuery):
    """`untouched` are the communities that no question touches. Instead of communities, `refused` lists the questions
    that the documents do not answer, and `far` the others that are near no passage."""

    untouched: bool = True
    refused: bool = False
    far: bool = False


class OfferRequest(Query):
    """Asks for rows about a community."""

    community_id: Name


class TestsetQuery(PageQuery):
    """ "waiting" is new or stale."""

    __test__ = False

    status: Literal["waiting", "approved", "rejected"] = "waiting"


class LabelRequest(Query):
    """What a person says of the question `id`: "label" with the passages that answer it (none: nothing does), "later"
    to be asked again after the others; "undo" takes the last label back."""

    action: Literal["label", "later", "undo"]
    id: Name = ""
    passages: Annotated[list[Name], Field(max_length=100)] = []


class RowRequest(Query):
    """What somebody decided about a row of the test set, of the version that was looked at; "add" takes an offered
    one."""

    action: Literal["approve", "edit", "reject", "undo", "add"]
    version: Name = ""
    question: Words = ""
    answers: Annotated[list[Words], Field(max_length=100)] = []
