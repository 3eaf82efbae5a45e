"""Says under which address the API answers what; the routes and the OpenAPI document are made of this table."""

from dataclasses import dataclass

from pydantic import BaseModel

from kraq_dspy.apps.serve import requests


@dataclass(frozen=True)
class Endpoint:
    """`name` is the method of `Api` that answers. A part of the path in braces is its argument of that name.

    A GET has a `query`, a POST a `body`. `produces` is what comes besides JSON.
    """

    method: str
    path: str
    name: str
    tag: str
    summary: str
    model: type[BaseModel] = requests.Query
    produces: str = ""


EVENTS = "text/event-stream"

ENDPOINTS = (
    Endpoint(
        "POST", "/api/ask", "ask", "Ask", "An answer with its evidence; as server-sent events where stream is true.",
        requests.AskRequest, EVENTS,
    ),
    Endpoint(
        "GET", "/api/search", "search", "Search", "Questions, entities and passages, as one types.",
        requests.SearchQuery,
    ),
    Endpoint(
        "GET", "/api/status", "status", "Index", "What the index holds, and the programs and retrievers there are."
    ),
    Endpoint(
        "GET", "/api/questions", "questions", "Index", "The representative questions, broadest first.",
        requests.QuestionsQuery,
    ),
    Endpoint(
        "GET", "/api/communities", "communities", "Index", "Communities, broadest and largest first.",
        requests.CommunitiesQuery,
    ),
    Endpoint(
        "GET", "/api/communities/{id}", "community", "Index",
        "A community: what is above and below it, its summary, entities and first passages.",
    ),
    Endpoint(
        "GET", "/api/communities/{id}/passages", "community_passages", "Index", "Its passages, in reading order.",
        requests.PageQuery,
    ),
    Endpoint(
        "GET", "/api/communities/{id}/graph", "community_graph", "Index", "Its entities and their neighbourhood.",
        requests.GraphQuery,
    ),
    Endpoint("GET", "/api/entities", "entities", "Index", "Entities, best connected first.", requests.EntitiesQuery),
    Endpoint(
        "GET", "/api/entities/{id}", "entity", "Index", "An entity: its links, claims, communities and first passages."
    ),
    Endpoint(
        "GET", "/api/entities/{id}/passages", "entity_passages", "Index", "Passages that mention it.",
        requests.PageQuery,
    ),
    Endpoint(
        "GET", "/api/entities/{id}/graph", "entity_graph", "Index", "It and what is next to it.", requests.GraphQuery
    ),
    Endpoint("GET", "/api/documents", "documents", "Index", "Ids and titles of documents.", requests.DocumentsQuery),
    Endpoint(
        "GET", "/api/documents/{id:path}", "document", "Index",
        "A document's text with its passages, and the questions that lead to it.",
    ),
    Endpoint("GET", "/api/coverage", "coverage", "Index", "How much of the corpus its questions cover."),
    Endpoint(
        "GET", "/api/catalogue", "entries", "Catalogue", "Prepared answers, those that wait for review first.",
        requests.CatalogueQuery,
    ),
    Endpoint(
        "GET", "/api/catalogue/{number:int}", "entry", "Catalogue", "An entry with its evidence and its versions."
    ),
    Endpoint(
        "POST", "/api/catalogue/{number:int}", "review", "Catalogue", "Approve, edit or reject an entry (--edit).",
        requests.ReviewRequest,
    ),
    Endpoint("GET", "/v1/models", "models", "OpenAI", "The programs, as models."),
    Endpoint("GET", "/v1/models/{id:path}", "model", "OpenAI", "One of them."),
    Endpoint(
        "POST", "/v1/chat/completions", "chat", "OpenAI", "A program answers what the user said last.",
        requests.ChatRequest, EVENTS,
    ),
    Endpoint("GET", "/health", "health", "Server", "Whether the server runs. Needs no token."),
    Endpoint("GET", "/ready", "ready", "Server", "Whether its indexes can be read and searched. Needs no token."),
    Endpoint(
        "GET", "/metrics", "metrics_text", "Server", "Counts and times in Prometheus's format.", produces="text/plain"
    ),
)  # fmt: skip
