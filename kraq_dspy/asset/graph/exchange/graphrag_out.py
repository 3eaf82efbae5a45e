"""Writes parquet tables in the columns of GraphRAG 3.x, so that its tools read them, and our questions beside them.

Beyond GraphRAG's columns: `predicate` of relationships and `names` of entities. Columns that GraphRAG fills and we do
not know (period, rating, status) are empty: nothing is made up.

Records are read as they are written, some thousand rows at a time. What stays in memory is what one table needs of
another: names and degrees of entities, places of communities, and which records mention a chunk.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kraq_dspy._internal.files import replaced
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Question, Relationship, Summary

if TYPE_CHECKING:
    import pyarrow

Row = dict[str, Any]
R = TypeVar("R", bound=Document | Chunk | Entity | Relationship | Claim | Community | Summary | Question)
ROWS, CHARACTERS = 4096, 4_000_000
"""A part of a table is written when it has so many rows, or so much text."""


class RecordSource(Protocol):
    """Reads all records of a kind, as often as they are wanted; an index is one."""

    def all(self, kind: type[R], /) -> Iterable[R]: ...


def write_graphrag(folder: Path, records: RecordSource) -> list[Path]:
    """The paths of the tables written into `folder`, which is made; each table that is there is replaced at once."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(folder / f"{name}.parquet", _schema(name), rows) for name, rows in _tables(records)]


def _tables(records: RecordSource) -> Iterator[tuple[str, Iterable[Row]]]:
    """(name, rows) of a table after the other; rows are to be used up before the next table is taken."""
    chunks_of: dict[str, list[str]] = defaultdict(list)
    for chunk in records.all(Chunk):
        chunks_of[chunk.document_id].append(chunk.id)
    yield "documents", (_document(document, chunks_of.get(document.id, ())) for document in records.all(Document))
    del chunks_of
    yield "text_units", _text_units(records)
    yield "entities", map(_entity, records.all(Entity))
    nodes = {entity.id: (entity.name, entity.degree) for entity in records.all(Entity)}
    yield "relationships", (_relationship(link, nodes) for link in records.all(Relationship))
    yield "covariates", (_covariate(claim, nodes) for claim in records.all(Claim))
    del nodes
    numbers = {community.id: number for number, community in enumerate(records.all(Community))}
    titles = {summary.community_id: summary.title for summary in records.all(Summary)}
    yield "communities", (_community(each, _place(each, numbers), titles) for each in records.all(Community))
    del titles
    places = {community.id: _place(community, numbers) for community in records.all(Community)}
    reported = (summary for summary in records.all(Summary) if summary.community_id in places)
    yield "community_reports", (_report(summary, places[summary.community_id]) for summary in reported)
    yield "kraq_questions", (_question(question, numbers) for question in records.all(Question))


def _document(document: Document, chunk_ids: Sequence[str]) -> Row:
    return {
        "id": document.id,
        "title": document.title,
        "text": document.text,
        "text_unit_ids": list(chunk_ids),
        "creation_date": str(document.metadata.get("creation_date", "")),
        "raw_data": json.dumps(dict(document.metadata), ensure_ascii=False, sort_keys=True),
    }


def _text_units(records: RecordSource) -> Iterator[Row]:
    entities = _by_chunk((entity.id, entity.chunk_ids) for entity in records.all(Entity))
    links = _by_chunk((link.id, link.chunk_ids) for link in records.all(Relationship))
    claims = _by_chunk((claim.id, (claim.chunk_id,)) for claim in records.all(Claim))
    for chunk in records.all(Chunk):
        yield {
            "id": chunk.id,
            "text": chunk.text,
            "n_tokens": chunk.n_tokens,
            "document_id": chunk.document_id,
            "entity_ids": entities.get(chunk.id, []),
            "relationship_ids": links.get(chunk.id, []),
            "covariate_ids": claims.get(chunk.id, []),
        }


def _by_chunk(records: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    """The ids of records, given with those of their chunks, by the chunk's id."""
    by_chunk: dict[str, list[str]] = defaultdict(list)
    for record_id, chunk_ids in records:
        for chunk_id in chunk_ids:
            by_chunk[chunk_id].append(record_id)
    return by_chunk


def _entity(entity: Entity) -> Row:
    return {
        "id": entity.id,
        "title": entity.name,
        "type": entity.type,
        "description": entity.description,
        "text_unit_ids": list(entity.chunk_ids),
        "frequency": len(entity.chunk_ids),
        "degree": entity.degree,
        "names": list(entity.names),
    }


def _relationship(link: Relationship, nodes: Mapping[str, tuple[str, int]]) -> Row:
    (source, source_degree), (target, target_degree) = nodes[link.source_id], nodes[link.target_id]
    return {
        "id": link.id,
        "source": source,
        "target": target,
        "description": link.description,
        "weight": link.weight,
        "combined_degree": source_degree + target_degree,
        "text_unit_ids": list(link.chunk_ids),
        "predicate": link.predicate,
    }


def _covariate(claim: Claim, nodes: Mapping[str, tuple[str, int]]) -> Row:
    return {
        "id": claim.id,
        "covariate_type": "claim",
        "type": None,
        "description": claim.statement,
        "subject_id": nodes[claim.entity_id][0],
        "object_id": nodes[claim.object_id][0] if claim.object_id else "NONE",
        "status": None,
        "start_date": None,
        "end_date": None,
        "source_text": None,
        "text_unit_id": claim.chunk_id,
    }


def _place(community: Community, numbers: Mapping[str, int]) -> Row:
    """What GraphRAG repeats in the tables of communities and of reports."""
    return {
        "community": numbers[community.id],
        "level": community.level,
        "parent": numbers.get(community.parent_id or "", -1),
        "children": [numbers[child_id] for child_id in community.child_ids if child_id in numbers],
        "period": "",
        "size": len(community.entity_ids),
    }


def _community(community: Community, place: Row, titles: Mapping[str, str]) -> Row:
    return {
        "id": community.id,
        **place,
        "title": titles.get(community.id) or f"Community {place['community']}",
        "entity_ids": list(community.entity_ids),
        "relationship_ids": list(community.relationship_ids),
        "text_unit_ids": list(community.chunk_ids),
    }


def _report(summary: Summary, place: Row) -> Row:
    findings = [{"explanation": each.explanation, "summary": each.summary} for each in summary.findings]
    sections = [f"# {summary.title}", summary.text, *(f"## {f.summary}\n\n{f.explanation}" for f in summary.findings)]
    whole = {"title": summary.title, "summary": summary.text, "findings": findings}
    return {
        "id": summary.community_id,
        **place,
        "title": summary.title,
        "summary": summary.text,
        "full_content": "\n\n".join(sections),
        "rank": None,
        "rating_explanation": None,
        "findings": findings,
        "full_content_json": json.dumps(whole, ensure_ascii=False),
    }


def _question(question: Question, numbers: Mapping[str, int]) -> Row:
    return {
        "id": question.id,
        "text": question.text,
        "source": question.source,
        "community": numbers.get(question.community_id or "", -1),
        "community_id": question.community_id,
        "level": question.level,
        "text_unit_ids": list(question.chunk_ids),
        "document_ids": list(question.document_ids),
        "model": question.model,
        "duplicate_of": question.duplicate_of,
    }


def _schema(table: str) -> "pyarrow.Schema":
    import pyarrow as pa

    text, whole, real = pa.string(), pa.int64(), pa.float64()
    texts, wholes = pa.list_(text), pa.list_(whole)
    place = {"community": whole, "level": whole, "parent": whole, "children": wholes, "title": text}
    columns: dict[str, dict[str, Any]] = {
        "documents": {
            "title": text, "text": text, "text_unit_ids": texts, "creation_date": text, "raw_data": text,
        },
        "text_units": {
            "text": text, "n_tokens": whole, "document_id": text, "entity_ids": texts, "relationship_ids": texts,
            "covariate_ids": texts,
        },
        "entities": {
            "title": text, "type": text, "description": text, "text_unit_ids": texts, "frequency": whole,
            "degree": whole, "names": texts,
        },
        "relationships": {
            "source": text, "target": text, "description": text, "weight": real, "combined_degree": whole,
            "text_unit_ids": texts, "predicate": text,
        },
        "covariates": {
            "covariate_type": text, "type": text, "description": text, "subject_id": text, "object_id": text,
            "status": text, "start_date": text, "end_date": text, "source_text": text, "text_unit_id": text,
        },
        "communities": {
            **place, "entity_ids": texts, "relationship_ids": texts, "text_unit_ids": texts, "period": text,
            "size": whole,
        },
        "community_reports": {
            **place, "summary": text, "full_content": text, "rank": real, "rating_explanation": text,
            "findings": pa.list_(pa.struct({"explanation": text, "summary": text})), "full_content_json": text,
            "period": text, "size": whole,
        },
        "kraq_questions": {
            "text": text, "source": text, "community": whole, "community_id": text, "level": whole,
            "text_unit_ids": texts, "document_ids": texts, "model": text, "duplicate_of": text,
        },
    }  # fmt: skip
    return pa.schema({"id": text, "human_readable_id": whole, **columns[table]})


def _write(path: Path, schema: "pyarrow.Schema", rows: Iterable[Row]) -> Path:
    import pyarrow.parquet

    with replaced(path) as draft, pyarrow.parquet.ParquetWriter(draft, schema) as writer:
        start = 0
        for part in _parts(rows):
            numbered = [{**row, "human_readable_id": start + number} for number, row in enumerate(part)]
            writer.write_table(_table(numbered, schema))
            start += len(part)
    return path


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """At most ROWS rows, and fewer where they hold CHARACTERS of text or more."""
    part: list[Row] = []
    characters = 0
    for row in rows:
        part.append(row)
        characters += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(part) == ROWS or characters >= CHARACTERS:
            yield part
            part, characters = [], 0
    if part:
        yield part


def _table(rows: Sequence[Row], schema: "pyarrow.Schema") -> "pyarrow.Table":
    """Half characters (lone surrogates), which parquet's UTF-8 does not have, become question marks."""
    import pyarrow as pa

    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except UnicodeEncodeError:
        return pa.Table.from_pylist([_writable(row) for row in rows], schema=schema)


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _writable(each) for key, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list) else value
