"""What a model is told about the form of a field: the shortest text that says it all."""

import dataclasses
import enum
import inspect
import json
from typing import Any, Literal, get_args, get_origin

import pydantic
from dspy.adapters.types.reasoning import Reasoning

PLAIN = {str: "str", bool: "bool", int: "int", float: "float", Reasoning: "str"}


def kind(annotation: Any) -> str:
    """One word: the Python name of a plain type, else "list", "dict", "literal" or "object"."""
    if annotation in PLAIN:
        return PLAIN[annotation]
    if choices(annotation):
        return "literal"
    origin = get_origin(annotation) or annotation
    return origin.__name__ if origin in (list, dict, tuple, set) else "object"


def choices(annotation: Any) -> tuple[Any, ...]:
    """The values of a Literal or an Enum; empty for other types."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if isinstance(annotation, enum.EnumMeta):
        members: Any = annotation.__members__
        return tuple(member.value for member in members.values())
    return ()


def requirement(annotation: Any) -> str:
    """What the value must look like; empty where the one-word kind says enough."""
    if annotation in (str, Reasoning):
        return ""
    if annotation is bool:
        return "must be True or False"
    if annotation in (int, float):
        return f"must be a single {annotation.__name__} value"
    options = choices(annotation)
    if options:
        return f"must be one of: {'; '.join(map(str, options))}"
    return f"has the JSON schema: {compact_schema(annotation)}"


def about(annotation: Any) -> str:
    """What the record, or the record that a list is made of, says about itself: its docstring's first line."""
    if get_origin(annotation) is list:
        annotation = get_args(annotation)[0]
    text = (inspect.getdoc(annotation) or "") if dataclasses.is_dataclass(annotation) else ""
    if text.startswith(f"{getattr(annotation, '__name__', '')}("):
        return ""  # what dataclass itself writes where there is no docstring
    return text.partition("\n")[0].rstrip(".")


def compact_schema(annotation: Any) -> str:
    """The JSON schema without titles and docstrings, with definitions in place, and with "type" and "required" only
    where they add something."""
    schema = pydantic.TypeAdapter(annotation).json_schema()
    definitions = {name: {**part, "description": None} for name, part in schema.pop("$defs", {}).items()}
    return json.dumps(_compacted(schema, definitions, ()), ensure_ascii=False, separators=(",", ":"))


def _compacted(part: Any, definitions: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(part, list):
        return [_compacted(entry, definitions, inside) for entry in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        if name in inside:
            return {"type": "object"}  # a type that contains itself: shown once
        return _compacted(definitions[name], definitions, (*inside, name))
    kept = {}
    for key, value in sorted(part.items(), key=lambda entry: entry[0] != "type"):
        if key == "properties":
            kept[key] = {name: _compacted(entry, definitions, inside) for name, entry in value.items()}
        elif key == "required":
            if set(value) != set(part.get("properties", {})):
                kept[key] = value
        elif key == "title" or value is None or (key == "additionalProperties" and not isinstance(value, dict)):
            continue
        elif key != "type" or "properties" not in part:  # what has properties is an object
            kept[key] = _compacted(value, definitions, inside)
    return kept
