"""Declares what requests may say, as pydantic models; the OpenAPI document is made of them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kraq_dspy.workspace.choices import DEFAULT_PROGRAM

KINDS = ("questions", "entities", "passages")
"""What can be searched."""

BY_WORDS = "bm25"

QUESTION = 4000
"""Characters of a question."""


class Query(BaseModel):
    """Of every request for data."""

    model_config = ConfigDict(extra="forbid")

    index: Annotated[str | None, Field(description="Name of the index; the first one without it.")] = None


class PageQuery(Query):
    offset: Annotated[int, Field(ge=0, description="How many to leave out.")] = 0
    limit: Annotated[int, Field(ge=1, le=200, description="How many at most.")] = 50


class QuestionsQuery(PageQuery):
    level: Annotated[int | None, Field(ge=0, description="Only this level; 0 is the broadest.")] = None
    q: Annotated[str, Field(max_length=QUESTION, description="Only those with these words.")] = ""


class StartersQuery(Query):
    limit: Annotated[int, Field(ge=1, le=50, description="How many at most.")] = 12


class CommunitiesQuery(PageQuery):
    level: Annotated[int | None, Field(ge=0, description="Only this level; 0 is the broadest.")] = None
    parent: Annotated[str | None, Field(description="Only those within this community.")] = None
    telling: Annotated[bool, Field(description="Only those with a question, or with others inside.")] = False


class EntitiesQuery(PageQuery):
    q: Annotated[str, Field(max_length=QUESTION, description="Only those with these words.")] = ""
    type: Annotated[str | None, Field(description="Only of this type.")] = None


class DocumentsQuery(PageQuery):
    q: Annotated[str, Field(max_length=QUESTION, description="Only those with these words in the title or id.")] = ""


class GraphQuery(Query):
    limit: Annotated[int, Field(ge=1, le=1000, description="Nodes at most.")] = 150


class SearchQuery(Query):
    q: Annotated[str, Field(max_length=QUESTION, description="What is searched; its last word may be unfinished.")] = ""
    limit: Annotated[int, Field(ge=1, le=50, description="How many of each kind at most.")] = 8
    kinds: Annotated[str, Field(description="What is searched, with commas.")] = ",".join(KINDS)
    retriever: Annotated[str, Field(max_length=200, description="What finds the passages.")] = BY_WORDS


class CatalogueQuery(PageQuery):
    status: Annotated[
        Literal["waiting", "pending", "approved", "stale"], Field(description="waiting: pending or stale.")
    ] = "waiting"


class AskRequest(BaseModel):
    """A question, and what is to answer it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"question": "Who wrote Ulysses?"}})

    question: Annotated[str, Field(min_length=1, max_length=QUESTION)]
    program: Annotated[str, Field(max_length=100, description="One of those that /api/status lists.")] = DEFAULT_PROGRAM
    retriever: Annotated[str | None, Field(max_length=200, description="What finds the passages.")] = None
    options: Annotated[dict[str, int | float | bool | str | None], Field(description="Of the program: {'k': 10}.")] = {}
    index: str | None = None
    stream: Annotated[bool, Field(description="Answer with server-sent events: stage, text, answer, error.")] = False


class ReviewRequest(BaseModel):
    """What somebody decided about an entry of the catalogue."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["approve", "edit", "reject"]
    version: Annotated[int, Field(ge=1, description="That was looked at; another one is refused.")]
    answer: Annotated[str | None, Field(max_length=100_000)] = None
    document_ids: list[str] | None = None
    index: str | None = None


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")
        return self.content or ""


class ChatRequest(BaseModel):
    """As of OpenAI's chat completions; sampling is the business of the roles' settings and is passed over here."""

    model_config = ConfigDict(extra="ignore")

    model: Annotated[str, Field(description="A program, or INDEX/PROGRAM: see /v1/models.")]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)]
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    n: Annotated[int | None, Field(ge=1, le=1)] = None
