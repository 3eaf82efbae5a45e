"""Answers the indexing prompts of GraphRAG, nano-graphrag, LightRAG and fast-graphrag in their own formats."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from stand_in_server.passage import Passage, Relation, clip, entities_of, hash_64, sentences_of, type_of, verb_between
from stand_in_server.request import ChatRequest, Reply, between
from stand_in_server.schema import fill

REPORT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "summary": {"type": "string"},
        "rating": {"type": "number", "minimum": 0, "maximum": 10},
        "rating_explanation": {"type": "string"},
        "findings": {
            "type": "array",
            "minItems": 3,
            "items": {
                "type": "object",
                "properties": {"summary": {"type": "string"}, "explanation": {"type": "string"}},
            },
        },
    },
}
LIGHTRAG_TYPES = {"geo": "Location", "person": "Person", "organization": "Organization", "event": "Event"}


def graphrag_extraction(request: ChatRequest) -> Reply | None:
    first, last = request.first, request.last
    if '("entity"' not in first or not ("entity_name" in first or "Entity_types:" in first):
        return None
    delimiter = "<|>" if "<|>" in first else "{tuple_delimiter}"
    text = (between(first, "Text:", None, last=True) or first).split("######################")[0]
    types = (between(first, "Entity_types:", "\n", last=True) or "").strip(" []").split(",")
    if last is first:
        return "graphrag_extract", _tuples(Passage(text), delimiter, types, gleaning=False)
    if "single letter Y or N" in last or "YES | NO" in last or "Answer Y" in last:
        return "graphrag_loop", "N"
    return "graphrag_glean", _tuples(Passage(text), delimiter, types, gleaning=True)


def lightrag_extraction(request: ChatRequest) -> Reply | None:
    system = request.system
    if not ("---Input Text---" in request.text and "Knowledge Graph Specialist" in request.text):
        return None
    user = next((turn for turn in request.users if "---Input Text---\n```" in turn), request.first)
    passage = Passage(between(user, "---Input Text---\n```", "\n```\n", last=True) or user)
    gleaning = "missed or incorrectly" in request.last
    kind = "lightrag_glean" if gleaning else "lightrag_extract"
    names, relations = _part_of(passage, gleaning)
    if '"entities"' in system or "JSON Contract" in system:
        entities = [
            {"name": e, "type": LIGHTRAG_TYPES[type_of(e)], "description": _described(e, passage)} for e in names
        ]
        relationships = [
            {"source": a, "target": b, "keywords": verb_between(a, b, s), "description": f"{a} and {b}: {clip(s)}"}
            for a, b, s in relations
        ]
        return kind, json.dumps({"entities": entities, "relationships": relationships}, ensure_ascii=False)
    mark = re.search(r"`?entity(<\|.*?\|>)entity_name", system) or re.search(r"entity(<\|[^|]*\|>)", system)
    cut = mark.group(1) if mark else "<|#|>"
    rows = [cut.join(["entity", e, LIGHTRAG_TYPES[type_of(e)], _described(e, passage)]) for e in names]
    rows += [cut.join(["relation", a, b, verb_between(a, b, s), f"{a} and {b}: {clip(s)}"]) for a, b, s in relations]
    return kind, "\n".join([*rows, "<|COMPLETE|>"])


def lightrag_keywords(request: ChatRequest) -> Reply | None:
    last = request.last
    if not ("high_level_keywords" in last and "low_level_keywords" in last):
        return None
    query = between(last, "User Query:", "---Output---", last=True) or last
    names = entities_of(query) or re.findall(r"[a-z]{5,}", query)[:3]
    high = re.findall(r"[a-z]{6,}", query)[:3] or names[:1]
    return "lightrag_keywords", json.dumps({"high_level_keywords": high, "low_level_keywords": names[:4]})


def description_summary(request: ChatRequest) -> Reply | None:
    last = request.last
    if "Description List" in last and ("Entities:" in last or " Name:" in last or "---Input---" in last):
        name = (between(last, "Entities:", "\n") or between(last, " Name:", "\n") or "It").strip()
        descriptions = between(last, "Description List:", "#######" if "#######" in last else "---Output---") or last
        descriptions = descriptions.replace('", "', ".\n").replace("[", " ").replace('{"Description":', " ")
        return "summarize_descriptions", f"{name}: " + " ".join(clip(s, 22) for s in sentences_of(descriptions)[:6])
    if "Given the current description, summarize it" in request.text:  # fast-graphrag, instructor's JSON mode
        user = next((turn for turn in request.users if "Current:" in turn), last)
        text = Passage(between(user, "Current:", "Updated:") or user).summary(4)
        as_json = "json_schema" in request.system
        return "summarize_descriptions", json.dumps({"description": text}, ensure_ascii=False) if as_json else text
    return None


def community_report(request: ChatRequest) -> Reply | None:
    last = request.last
    if "IMPACT SEVERITY RATING" in last or "IMPORTANCE RATING" in last:
        end = "The report should include the following sections"
        text = between(last, "Text:\n", end, last=True)
        start = last.rfind("Use the following text for your answer")
        if start >= 0:
            text = last[start:].split("Text:", 1)[-1].split(end)[0].split("Output:")[0]
        elif "# Real Data" in last:
            text = last.split("# Real Data")[-1]
        properties = None if request.schema is None else request.schema.get("properties") or {}
        dates = "date_range" in last and (properties is None or "date_range" in properties)
        return "community_report", _report(text or last, dates)
    if "IMPACT SEVERITY RATING" in request.system or "IMPORTANCE RATING" in request.system:
        return "community_report", _report(last)
    return None


def _tuples(passage: Passage, cut: str, types: Sequence[str], gleaning: bool) -> str:
    """GraphRAG's tuple records."""
    names, relations = _part_of(passage, gleaning)
    records = [
        f'("entity"{cut}{e.upper()}{cut}{type_of(e, types).upper()}{cut}{_described(e, passage)})' for e in names
    ]
    records += [
        f'("relationship"{cut}{a.upper()}{cut}{b.upper()}{cut}{a} {verb_between(a, b, s)} {b}: {clip(s)}'
        f"{cut}{1 + hash_64(a, b) % 9})"
        for a, b, s in relations
    ]
    return "".join(record + "\n##\n" for record in records) + "<|COMPLETE|>"


def _part_of(passage: Passage, gleaning: bool) -> tuple[list[str], list[Relation]]:
    """Three quarters at the first call, the rest when asked for what was missed."""
    entities, relations = math.ceil(len(passage.entities) * 0.75), math.ceil(len(passage.relations) * 0.75)
    if gleaning:
        return passage.entities[entities:], passage.relations[relations:]
    names = passage.entities[:entities]
    return names, [r for r in passage.relations[:relations] if r[0] in names and r[1] in names]


def _described(name: str, passage: Passage) -> str:
    return f"{name} is described: {clip(passage.descriptions[name])}"


def _report(text: str, dates: bool = False) -> str:
    text = re.sub(r"(?m)^-{3,}.*$|^(human_readable_id|id|text_unit_id|community),.*$|^\d+,", "", text)  # of CSV tables
    report = fill(REPORT, "report", Passage(text, 10, 8))
    if dates:
        report["date_range"] = ["2023-11-01", "2024-12-31"]
    return json.dumps(report, ensure_ascii=False, indent=1)
