"""Writes parquet tables in the columns of GraphRAG 3.x, so that its tools read them, and our questions beside them.

Beyond GraphRAG's columns: `predicate` of relationships and `names` of entities. Columns that GraphRAG fills and we do
not know (period, rating, status) are empty: nothing is made up.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kraq_dspy.files import replaced
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Question, Relationship, Summary

if TYPE_CHECKING:
    import pyarrow

Row = dict[str, Any]


@dataclass(frozen=True)
class GraphTables:
    """The records that GraphRAG has tables for, and the questions, which get one of their own."""

    documents: Sequence[Document]
    chunks: Sequence[Chunk]
    entities: Sequence[Entity]
    relationships: Sequence[Relationship]
    claims: Sequence[Claim] = ()
    communities: Sequence[Community] = ()
    summaries: Sequence[Summary] = ()
    questions: Sequence[Question] = ()


def write_graphrag(folder: Path, records: GraphTables) -> list[Path]:
    """The paths of the tables written into `folder`, which is made; each table that is there is replaced at once."""
    numbers = {community.id: number for number, community in enumerate(records.communities)}
    names = {entity.id: entity.name for entity in records.entities}
    degrees = {entity.id: entity.degree for entity in records.entities}
    titles = {summary.community_id: summary.title for summary in records.summaries}
    chunks_of: dict[str, list[str]] = defaultdict(list)
    for chunk in records.chunks:
        chunks_of[chunk.document_id].append(chunk.id)
    places = {community.id: _place(community, numbers) for community in records.communities}
    tables = {
        "documents": [_document(document, chunks_of[document.id]) for document in records.documents],
        "text_units": _text_units(records.chunks, records.entities, records.relationships, records.claims),
        "entities": [_entity(entity) for entity in records.entities],
        "relationships": [_relationship(link, names, degrees) for link in records.relationships],
        "covariates": [_covariate(claim, names) for claim in records.claims],
        "communities": [_community(community, places, titles) for community in records.communities],
        "community_reports": [
            _report(summary, places[summary.community_id])
            for summary in records.summaries
            if summary.community_id in places
        ],
        "kraq_questions": [_question(question, numbers) for question in records.questions],
    }
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(folder / f"{name}.parquet", _schema(name), rows) for name, rows in tables.items()]


def _document(document: Document, chunk_ids: Sequence[str]) -> Row:
    return {
        "id": document.id,
        "title": document.title,
        "text": document.text,
        "text_unit_ids": list(chunk_ids),
        "creation_date": str(document.metadata.get("creation_date", "")),
        "raw_data": json.dumps(dict(document.metadata), ensure_ascii=False, sort_keys=True),
    }


def _text_units(
    chunks: Sequence[Chunk], entities: Iterable[Entity], relationships: Iterable[Relationship], claims: Iterable[Claim]
) -> list[Row]:
    entities_of, links_of, claims_of = (defaultdict(list) for _ in range(3))
    for entity in entities:
        for chunk_id in entity.chunk_ids:
            entities_of[chunk_id].append(entity.id)
    for link in relationships:
        for chunk_id in link.chunk_ids:
            links_of[chunk_id].append(link.id)
    for claim in claims:
        claims_of[claim.chunk_id].append(claim.id)
    return [
        {
            "id": chunk.id,
            "text": chunk.text,
            "n_tokens": chunk.n_tokens,
            "document_id": chunk.document_id,
            "entity_ids": entities_of[chunk.id],
            "relationship_ids": links_of[chunk.id],
            "covariate_ids": claims_of[chunk.id],
        }
        for chunk in chunks
    ]


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


def _relationship(link: Relationship, names: Mapping[str, str], degrees: Mapping[str, int]) -> Row:
    return {
        "id": link.id,
        "source": names[link.source_id],
        "target": names[link.target_id],
        "description": link.description,
        "weight": link.weight,
        "combined_degree": degrees[link.source_id] + degrees[link.target_id],
        "text_unit_ids": list(link.chunk_ids),
        "predicate": link.predicate,
    }


def _covariate(claim: Claim, names: Mapping[str, str]) -> Row:
    return {
        "id": claim.id,
        "covariate_type": "claim",
        "type": None,
        "description": claim.statement,
        "subject_id": names[claim.entity_id],
        "object_id": "NONE",
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


def _community(community: Community, places: Mapping[str, Row], titles: Mapping[str, str]) -> Row:
    place = places[community.id]
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


def _write(path: Path, schema: "pyarrow.Schema", rows: Sequence[Row]) -> Path:
    import pyarrow.parquet

    with replaced(path) as draft, pyarrow.parquet.ParquetWriter(draft, schema) as writer:
        for start in range(0, len(rows), 4096):
            part = [{**row, "human_readable_id": start + n} for n, row in enumerate(rows[start : start + 4096])]
            writer.write_table(_table(part, schema))
    return path


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
