"""Writes records as JSON lines, one file for each kind."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kraq_dspy.files import replaced
from kraq_dspy.records import (
    CatalogueEntry,
    Chunk,
    Claim,
    Community,
    Document,
    Entity,
    Extraction,
    Failure,
    Merge,
    Question,
    Relationship,
    Summary,
)

FILES: dict[type[Any], str] = {
    Document: "documents.jsonl",
    Chunk: "chunks.jsonl",
    Extraction: "extractions.jsonl",
    Entity: "entities.jsonl",
    Relationship: "relationships.jsonl",
    Claim: "claims.jsonl",
    Merge: "merges.jsonl",
    Community: "communities.jsonl",
    Summary: "summaries.jsonl",
    Question: "questions.jsonl",
    Failure: "failures.jsonl",
    CatalogueEntry: "catalogue.jsonl",
}


def write_jsonl(folder: Path, kind: type[Any], records: Iterable[Any]) -> Path:
    """The file of `kind` in `folder`, which is made: UTF-8, a record per line, its fields in their order; half
    characters (lone surrogates), which UTF-8 does not have, become question marks.

    Records are written as they come; the file appears, or is replaced, when all are. Raises ValueError for a kind that
    is no record, TypeError for a record of another kind.
    """
    if kind not in FILES:
        raise ValueError(f"{kind!r} is no kind of record; known: {', '.join(each.__name__ for each in FILES)}.")
    path = folder / FILES[kind]
    folder.mkdir(parents=True, exist_ok=True)
    with replaced(path) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="\n") as lines:
        for record in records:
            if not isinstance(record, kind):
                raise TypeError(f"{record!r} is no {kind.__name__}.")
            json.dump(dataclasses.asdict(record), lines, ensure_ascii=False)
            lines.write("\n")
    return path
