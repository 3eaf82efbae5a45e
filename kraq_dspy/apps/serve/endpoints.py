"""Declares under which address a method of the API answers, and makes the OpenAPI document of what was declared."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

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
    "429": "Too many requests; Retry-After says when.",
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
