"""Declares under which address a method of the API answers, and makes the OpenAPI document of what was declared."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema

from kraq_dspy.errors import (
    BudgetExceededError,
    CatalogueConflictError,
    CatalogueError,
    ConfigError,
    EvaluationError,
    IndexLockedError,
    IndexStateError,
    KraqError,
    ModelError,
    ServerDownError,
    UnknownRecordError,
)

Answer = TypeVar("Answer", bound=Callable[..., Any])


@dataclass(frozen=True)
class Endpoint:
    """`name` is the method that answers. A part of the path in braces is its argument of that name.

    `model` is what its parameter `query` (of a GET) or `body` (of a POST) is. `produces` is what comes besides JSON.
    """

    method: str
    path: str
    name: str
    tag: str
    summary: str
    model: type[BaseModel]
    produces: str


def get(path: str, tag: str, summary: str, *, produces: str = "") -> Callable[[Answer], Answer]:
    """Declares a method to answer GET requests for `path`."""
    return _declares("GET", "query", path, tag, summary, produces)


def post(path: str, tag: str, summary: str, *, produces: str = "") -> Callable[[Answer], Answer]:
    """Declares a method to answer POST requests to `path`."""
    return _declares("POST", "body", path, tag, summary, produces)


def _declares(method: str, given: str, path: str, tag: str, summary: str, produces: str) -> Callable[[Answer], Answer]:
    def declare(answer: Answer) -> Answer:
        model = get_type_hints(answer)[given]
        described: Any = answer
        described.endpoint = Endpoint(method, path, answer.__name__, tag, summary, model, produces)
        return answer

    return declare


def declared(api: type) -> tuple[Endpoint, ...]:
    """What the methods of a class were declared to answer, in their order."""
    return tuple(method.endpoint for method in vars(api).values() if hasattr(method, "endpoint"))


_REFUSED = {
    "400": "The request is no JSON.",
    "401": "The token lacks or is another one.",
    "404": "There is no such record, index or program.",
    "413": "The request is too large.",
    "422": "A value is missing, unknown or out of range.",
    "503": "Busy, or an index is just being changed; Retry-After says when.",
}


def openapi(endpoints: Sequence[Endpoint], token: bool) -> dict[str, Any]:
    """The OpenAPI document of these; `token` says whether the server asks for one."""
    bodies = {each.model for each in endpoints if each.method == "POST"}
    _, schemas = models_json_schema(
        [(model, "validation") for model in sorted(bodies, key=lambda model: model.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    paths: dict[str, Any] = {}
    for each in endpoints:
        path = re.sub(r"\{(\w+):\w+\}", r"{\1}", each.path)
        paths.setdefault(path, {})[each.method.lower()] = _operation(each)
    components: dict[str, Any] = {"schemas": schemas.get("$defs", {})}
    if token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kraq",
            "version": version("kraq-dspy"),
            "description": "Questions, communities, entities and documents of an index, and answers from it.",
        },
        "paths": paths,
        "components": components,
        "security": [{"token": []}] if token else [],
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    kinds: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
    if endpoint.produces == "text/plain":
        kinds = {}
    if endpoint.produces:
        kinds[endpoint.produces] = {"schema": {"type": "string"}}
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "integer" if kind == "int" else "string"},
            }
            for name, kind in re.findall(r"\{(\w+):?(\w*)\}", endpoint.path)
        ],
        "responses": {
            "200": {"description": "Done.", "content": kinds},
            **{status: {"description": text} for status, text in _REFUSED.items()},
        },
    }
    if endpoint.method == "POST":
        schema = {"$ref": f"#/components/schemas/{endpoint.model.__name__}"}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        return operation
    described: dict[str, Any] = endpoint.model.model_json_schema()
    for name, value in described.get("properties", {}).items():
        description = value.pop("description", "")
        operation["parameters"].append(
            {"name": name, "in": "query", "required": False, "description": description, "schema": value}
        )
    return operation


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
    single: Annotated[bool | None, Field(description="Only those of a single passage, or (false) of several.")] = None


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
    program: Annotated[
        str | None,
        Field(max_length=100, description="One of /api/status; without one a prepared answer or the default."),
    ] = None
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


logger = logging.getLogger(__name__)


@dataclass
class RequestError(Exception):
    """A request that is refused. `message` is for the client."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


def not_found(what: str, name: str) -> RequestError:
    return RequestError(404, "not_found", f"There is no {what} {name[:80]!r} in this index.")


def busy(message: str, seconds: int) -> RequestError:
    return RequestError(503, "busy", f"{message} Try again in {seconds} s.", {"Retry-After": str(seconds)})


_OF_KINDS: tuple[tuple[type[BaseException], int, str, str], ...] = (
    (UnknownRecordError, 404, "not_found", "The index has no such record, or no longer."),
    (IndexLockedError, 503, "index_in_use", "Another program is changing this index. Try again later."),
    (
        EvaluationError, 409, "not_there", "The index has no questions, or no passages, to work this out from."
    ),
    (
        IndexStateError, 503, "index_state",
        "The index lacks what this needs, or is damaged. The server's log says what, and the command that mends it.",
    ),
    (BudgetExceededError, 503, "budget", "The server has spent what it may spend on models."),
    (ServerDownError, 502, "model_unreachable", "The language model cannot be reached. The server's log says why."),
    (ModelError, 502, "model_failed", "The language model could not do it. The server's log says why."),
)  # fmt: skip


def as_request_error(error: BaseException) -> RequestError:
    """The error as a client meets it; what is wrong here goes to the log in full."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, CatalogueConflictError | CatalogueError):
        return RequestError(409, "catalogue", str(error).partition(" See them all:")[0])
    if type(error) is IndexStateError and not re.search(r"[/\\]", str(error)):
        return RequestError(409, "index_state", str(error))  # it names no folder, so it is about what was asked for
    for kind, status, code, message in _OF_KINDS:
        if isinstance(error, kind):
            logger.log(logging.ERROR if status >= 500 else logging.INFO, "%s: %s", code, error)
            return RequestError(status, code, message, {"Retry-After": "5"} if status == 503 else {})
    if type(error).__module__.startswith("dspy."):
        logger.error("A call to the model failed: %s", error)
        return RequestError(502, "model_failed", _OF_KINDS[-1][3])
    logger.error("A request failed", exc_info=error)
    shown = "a setting is wrong" if isinstance(error, ConfigError) else "an error"
    shown = shown if isinstance(error, KraqError) else "an unexpected error"
    return RequestError(500, "internal", f"The server met {shown}. Its log says which.")


def body_of(error: RequestError) -> dict[str, Any]:
    """In the shape of OpenAI's API, which suits every client."""
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    return {"error": {"message": error.message, "type": kind, "code": error.code}}
