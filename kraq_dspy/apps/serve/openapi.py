"""Describes the API in OpenAPI's words, from the addresses and the models that check what requests hold."""

import inspect
import re
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any, get_args

from pydantic import BaseModel

from kraq_dspy.apps.views import View

Address = tuple[str, Callable[..., Any], type[BaseModel]]
"""A path, the method that answers there, and what its parameters or its body may be."""

_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")
_TYPES = {"int": "integer", "float": "number"}

_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("message", "type", "code")},
        }
    },
}


def described(reading: Iterable[Address], posting: Iterable[Address]) -> dict[str, Any]:
    """The document of /openapi.json, version 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {}
    for path, answer, model in reading:
        query = _schema(model, schemas)
        operation = _operation("get", path, answer, schemas)
        required = query.get("required", ())
        operation["parameters"] += [
            {"name": name, "in": "query", "required": name in required, "schema": each}
            for name, each in query.get("properties", {}).items()
        ]
        paths.setdefault(_plain(path), {})["get"] = operation

    for path, answer, model in posting:
        schemas[model.__name__] = _schema(model, schemas)
        operation = _operation("post", path, answer, schemas)
        reference = {"$ref": f"#/components/schemas/{model.__name__}"}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": reference}}}
        paths.setdefault(_plain(path), {})["post"] = operation

    return {
        "openapi": "3.1.0",
        "info": {"title": "kraq_dspy", "version": version("kraq-dspy")},
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],  # a server without tokens asks for none
    }


def _operation(method: str, path: str, answer: Callable[..., Any], schemas: dict[str, Any]) -> dict[str, Any]:
    reply: dict[str, Any] = {}
    if model := reply_of(answer):
        schemas[model.__name__] = _schema(model, schemas)
        reply = {"$ref": f"#/components/schemas/{model.__name__}"}

    error = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    operation: dict[str, Any] = {
        "operationId": "_".join([method, answer.__name__, *re.findall(r"(?<=\{)\w+", path)]),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": _TYPES.get(kind, "string")}}
            for name, kind in _PARAMETER.findall(path)
        ],
        "responses": {
            "200": {"description": "The answer.", "content": {"application/json": {"schema": reply}}},
            "default": {"description": "What is wrong.", **error},
        },
    }

    summary = (inspect.getdoc(answer) or "").partition("\n\n")[0].replace("\n", " ")
    return {"summary": summary, **operation} if summary else operation


def reply_of(answer: Callable[..., Any]) -> type[View] | None:
    """The view that a method of the API says that it returns, if it does; the others answer with JSON of any kind."""
    returned = inspect.signature(answer).return_annotation
    views = [each for each in (returned, *get_args(returned)) if isinstance(each, type) and issubclass(each, View)]
    return views[0] if views else None


def _schema(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    """The model's own schema; those of its parts go to `schemas`."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs", {}))
    return schema


def _plain(path: str) -> str:
    """Write the address without the kinds of its parameters, which OpenAPI does not write there.

    >>> _plain("/api/documents/{id:path}")
    '/api/documents/{id}'
    """
    return _PARAMETER.sub(r"{\1}", path)
