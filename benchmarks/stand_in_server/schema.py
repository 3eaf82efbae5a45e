"""Fills any JSON schema with what a passage offers, by the names of the fields."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from stand_in_server.passage import Passage, clip, type_of, verb_between

Schema = dict[str, Any]

SOURCES = {"subject", "source", "head", "src", "from", "sourceentity", "entitya", "entity1", "start", "subj", "srcid"}
TARGETS = {"object", "target", "tail", "dst", "to", "targetentity", "entityb", "entity2", "end", "obj", "tgtid"}
PREDICATES = {"predicate", "relation", "relationship", "rel", "verb", "edge", "label", "relationtype"}
PREDICATES |= {"relationshiptype"}
TRIPLES = {"triples", "relations", "relationships", "edges"}
ENTITY_NAMES = {"name", "entity", "entityname", "id", "text", "mention"}
ENTITY_TYPES = {"type", "entitytype", "category", "label", "kind", "class"}
NAME_LISTS = {"named", "generic", "names", "keywords", "topics", "lowlevelkeywords", "highlevelkeywords", "aliases"}


@dataclass(frozen=True)
class Place:
    """Where a value is filled in: `n` counts the items of the list around it, `parent` is its object's kind."""

    name: str
    n: int = 0
    parent: str | None = None  # "relation", "entity"
    definitions: Schema = field(default_factory=dict)


def fill(schema: Any, name: str, passage: Passage) -> Any:
    """A value that the schema allows, the same one for the same passage."""
    return _filled(schema, passage, Place(name))


def _filled(schema: Any, passage: Passage, place: Place) -> Any:
    if not isinstance(schema, dict):
        return None
    definitions = {**place.definitions, **schema.get("$defs", {}), **schema.get("definitions", {})}
    place = replace(place, definitions=definitions)
    if "$ref" in schema:
        return _filled(_referred(schema, definitions), passage, place)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return _one_of(schema["enum"], passage, place.n)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            options = [option for option in schema[choice] if option.get("type") != "null"]
            return _filled(options[0] if options else {}, passage, place)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((x for x in kind if x != "null"), "string")
    if kind == "object" or "properties" in schema:
        return _object(schema, passage, place)
    if kind == "array":
        return _array(schema, passage, place)
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        return _number(schema, kind, place)
    return _string(passage, place)


def _referred(schema: Schema, definitions: Schema) -> Any:
    return definitions.get(schema["$ref"].split("/")[-1], {})


def _one_of(values: list[Any], passage: Passage, n: int) -> Any:
    lowered = [str(value).lower() for value in values]
    for candidate in ("done", type_of(passage.entities[n % len(passage.entities)]) if passage.entities else ""):
        if candidate in lowered:
            return values[lowered.index(candidate)]
    return values[n % len(values)]


def _object(schema: Schema, passage: Passage, place: Place) -> Any:
    properties = schema.get("properties")
    if not properties:
        values = schema.get("additionalProperties")
        if isinstance(values, dict) and values:
            return {
                name: _filled(values, passage, Place(name, k, None, place.definitions))
                for k, name in enumerate(passage.entities[:5])
            }
        subject, predicate, obj = _triple(passage, place.n)
        return {"subject": subject, "predicate": predicate, "object": obj}
    names = {letters(name) for name in properties}
    parent = "relation" if names & SOURCES and names & TARGETS else "entity"
    return {
        name: _filled(part, passage, Place(name, place.n, parent, place.definitions))
        for name, part in properties.items()
    }


def _array(schema: Schema, passage: Passage, place: Place) -> list[Any]:
    if "prefixItems" in schema:
        if len(schema["prefixItems"]) == 3 and passage.relations:
            return list(_triple(passage, place.n))
        return [_filled(part, passage, replace(place, n=place.n + k)) for k, part in enumerate(schema["prefixItems"])]
    items = schema.get("items", {"type": "string"})
    item = _referred(items, place.definitions) if "$ref" in items else items
    properties = {letters(name) for name in item.get("properties", {})}
    if "ids" in properties:
        return []
    count = _count(letters(place.name), item, properties, passage)
    count = max(schema.get("minItems", 0), min(schema.get("maxItems", 10**6), count))
    return [_filled(items, passage, replace(place, n=k)) for k in range(count)]


def _count(name: str, item: Schema, properties: set[str], passage: Passage) -> int:
    related = properties & SOURCES and properties & TARGETS
    if related or "prefixItems" in item or name in TRIPLES:
        return len(passage.relations)
    if "question" in name or "quer" in name:
        return 5
    if "finding" in name or "point" in name or "insight" in name:
        return min(5, max(1, len(passage.relations)))
    if item.get("type") in ("integer", "number"):
        return min(3, len(passage.entities))
    return len(passage.entities)


def _number(schema: Schema, kind: str, place: Place) -> float:
    name = letters(place.name)
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is None and high is None:
        if kind == "number" and any(word in name for word in ("confid", "prob", "weight")):
            return 0.8
        if name.endswith(("id", "index")):
            return place.n
        return 7 if kind == "integer" else 7.0
    low = low if low is not None else 0
    high = high if high is not None else low + 10
    value = low + 0.75 * (high - low)
    return round(value) if kind == "integer" else value


def _string(passage: Passage, place: Place) -> str:
    name, n = letters(place.name), place.n
    if place.parent == "relation" and passage.relations:
        return _part_of_relation(name, passage, n)
    entity = passage.entities[n % len(passage.entities)] if passage.entities else "Unknown"
    if "question" in name or "quer" in name:
        return passage.question(n)
    if place.parent == "entity" and name in ENTITY_NAMES:
        return entity
    if name in ENTITY_TYPES:
        return type_of(entity)
    if name.startswith("entit") or name in NAME_LISTS:
        return entity
    if "title" in name or "theme" in name:
        return " and ".join(passage.entities[:2]) or "Untitled"
    if name in TRIPLES - {"edges"} and passage.relations:
        return " | ".join(_triple(passage, n))
    if name in ("desc", "description") and entity in passage.descriptions:
        return f"{entity} is described: {clip(passage.descriptions[entity])}"
    if name == "explanation" and place.parent:
        sentences = passage.sentences[n : n + 2] or passage.sentences[:1]
        return " ".join(clip(sentence, 40) for sentence in sentences) + " [Data: Entities (0)]"
    if name == "summary" and place.parent and n:
        return clip(passage.sentences[n % len(passage.sentences)], 12) if passage.sentences else "Finding"
    return passage.summary(3)


def _part_of_relation(name: str, passage: Passage, n: int) -> str:
    a, b, sentence = passage.relations[n % len(passage.relations)]
    if name in SOURCES:
        return a
    if name in TARGETS:
        return b
    if name in PREDICATES or "keyword" in name:
        return verb_between(a, b, sentence)
    return f"{a} is related to {b}: {clip(sentence)}"


def _triple(passage: Passage, n: int) -> tuple[str, str, str]:
    a, b, sentence = passage.relations[n % len(passage.relations)] if passage.relations else ("A", "B", "")
    return a, verb_between(a, b, sentence), b


def letters(name: str) -> str:
    """`entity_name` and `EntityName` are one field."""
    return re.sub(r"[^a-z]", "", (name or "").lower())
