"""Makes the OpenAPI document of the table of endpoints and the models of requests."""

import re
from importlib.metadata import version
from typing import Any

from pydantic.json_schema import models_json_schema

from kraq_dspy.apps.serve.endpoints import ENDPOINTS, Endpoint

_REFUSED = {
    "400": "The request is no JSON.",
    "401": "The token lacks or is another one.",
    "404": "There is no such record, index or program.",
    "413": "The request is too large.",
    "422": "A value is missing, unknown or out of range.",
    "429": "Too many requests; Retry-After says when.",
    "503": "Busy, or an index is just being changed; Retry-After says when.",
}


def openapi(token: bool) -> dict[str, Any]:
    """`token`: whether the server asks for one."""
    bodies = {each.model for each in ENDPOINTS if each.method == "POST"}
    _, schemas = models_json_schema(
        [(model, "validation") for model in sorted(bodies, key=lambda model: model.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    paths: dict[str, Any] = {}
    for each in ENDPOINTS:
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
