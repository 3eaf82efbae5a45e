"""Writes parquet tables in the columns of GraphRAG 3.x, so that its tools read them, and our questions beside them.

Beyond GraphRAG's columns: `predicate` of relationships, `names` of entities, and `acl` of documents, the labels of who
may read them. What we do not know (period, rating,
status) is empty. Some hundred rows are written at a time; what stays in memory is what one table needs of another.
"""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kraq_dspy._internal.files import replaced
from kraq_dspy.errors import needs
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Question, Relationship, Summary

if TYPE_CHECKING:
    import pyarrow

Row = dict[str, Any]
R = TypeVar("R", bound=Document | Chunk | Entity | Relationship | Claim | Community | Summary | Question)

_ROWS = 500  # written at once
_PLACE = "community level parent children title"
_COLUMNS = {
    "documents": "title text text_unit_ids creation_date raw_data acl",
    "text_units": "text n_tokens document_id entity_ids relationship_ids covariate_ids",
    "entities": "title type description text_unit_ids frequency degree names",
    "relationships": "source target description weight combined_degree text_unit_ids predicate",
    "covariates": "covariate_type type description subject_id object_id status start_date end_date source_text "
    "text_unit_id",
    "communities": f"{_PLACE} entity_ids relationship_ids text_unit_ids period size",
    "community_reports": f"{_PLACE} summary full_content rank rating_explanation findings full_content_json period "
    "size",
    "kraq_questions": "text source community community_id level text_unit_ids document_ids evidence_ids share model "
    "duplicate_of",
}
"""The columns of each table behind `id` and `human_readable_id`; what a row does not have is empty."""
_WHOLE = frozenset(
    ["n_tokens", "frequency", "degree", "combined_degree", "community", "level", "parent", "size", "human_readable_id"]
)


class RecordSource(Protocol):
    """Reads all records of a kind, as often as they are wanted; an index is one."""

    def all(self, kind: type[R], /) -> Iterable[R]: ...


def write_parquet(folder: Path, records: RecordSource) -> list[Path]:
    """The paths of the tables written into `folder`, which is made; each table that is there is replaced at once."""
    with needs("pyarrow", "parquet", "Writing parquet"):
        import pyarrow as pa
        import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, rows in _tables(records):
        columns = ["id", "human_readable_id", *_COLUMNS[name].split()]
        schema = pa.schema([(column, _type(column)) for column in columns])
        path, numbers, rows = folder / f"{name}.parquet", itertools.count(), iter(rows)
        with replaced(path) as draft, pyarrow.parquet.ParquetWriter(draft, schema) as writer:
            while part := [{**row, "human_readable_id": next(numbers)} for row in itertools.islice(rows, _ROWS)]:
                try:
                    table = pa.Table.from_pylist(part, schema=schema)
                except UnicodeEncodeError:
                    table = pa.Table.from_pylist([_writable(row) for row in part], schema=schema)
                writer.write_table(table)
        paths.append(path)
    return paths


def _type(column: str) -> "pyarrow.DataType":
    import pyarrow as pa

    if column in _WHOLE:
        return pa.int64()
    if column in ("weight", "rank", "share"):
        return pa.float64()
    if column == "findings":
        return pa.list_(pa.struct({"explanation": pa.string(), "summary": pa.string()}))
    if column == "children":
        return pa.list_(pa.int64())
    return pa.list_(pa.string()) if column.endswith("_ids") or column in ("names", "acl") else pa.string()


def _writable(value: Any) -> Any:
    """Half characters (lone surrogates), which parquet's UTF-8 does not have, become question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _writable(each) for key, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list | tuple) else value


def _tables(records: RecordSource) -> Iterator[tuple[str, Iterable[Row]]]:
    """(name, rows) of a table after the other; rows are to be used up before the next table is
    taken."""
    chunks_of = _by_owner((chunk.id, (chunk.document_id,)) for chunk in records.all(Chunk))
    yield "documents", (_document(document, chunks_of) for document in records.all(Document))
    del chunks_of  # large, and used up
    yield "text_units", _text_units(records)

    yield "entities", map(_entity, records.all(Entity))
    nodes = {entity.id: (entity.name, entity.degree) for entity in records.all(Entity)}
    yield "relationships", (_relationship(link, nodes) for link in records.all(Relationship))
    yield "covariates", (_covariate(claim, nodes) for claim in records.all(Claim))
    del nodes

    numbers = {community.id: number for number, community in enumerate(records.all(Community))}
    yield "communities", _community_rows(records, numbers)
    yield "community_reports", _report_rows(records, numbers)
    yield "kraq_questions", (_question(question, numbers) for question in records.all(Question))


def _community_rows(records: RecordSource, numbers: Mapping[str, int]) -> Iterator[Row]:
    titles = {summary.community_id: summary.title for summary in records.all(Summary)}
    for community in records.all(Community):
        yield _community(community, _place(community, numbers), titles)


def _report_rows(records: RecordSource, numbers: Mapping[str, int]) -> Iterator[Row]:
    places = {community.id: _place(community, numbers) for community in records.all(Community)}
    for summary in records.all(Summary):
        if summary.community_id in places:
            yield _report(summary, places[summary.community_id])


def _by_owner(records: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    """The ids of records, given with those of their owners, by the owner's id."""
    by_owner: dict[str, list[str]] = defaultdict(list)
    for record_id, owner_ids in records:
        for owner_id in owner_ids:
            by_owner[owner_id].append(record_id)
    return by_owner


def _document(document: Document, chunks_of: Mapping[str, list[str]]) -> Row:
    return {
        "id": document.id,
        "title": document.title,
        "text": document.text,
        "text_unit_ids": chunks_of.get(document.id, []),
        "creation_date": str(document.metadata.get("creation_date", "")),
        "raw_data": json.dumps(dict(document.metadata), ensure_ascii=False, sort_keys=True),
        "acl": document.labels,
    }


def _text_units(records: RecordSource) -> Iterator[Row]:
    entities = _by_owner((entity.id, entity.chunk_ids) for entity in records.all(Entity))
    links = _by_owner((link.id, link.chunk_ids) for link in records.all(Relationship))
    claims = _by_owner((claim.id, (claim.chunk_id,)) for claim in records.all(Claim))

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


def _entity(entity: Entity) -> Row:
    return {
        "id": entity.id,
        "title": entity.name,
        "type": entity.type,
        "description": entity.description,
        "text_unit_ids": entity.chunk_ids,
        "frequency": len(entity.chunk_ids),
        "degree": entity.degree,
        "names": entity.names,
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
        "text_unit_ids": link.chunk_ids,
        "predicate": link.predicate,
    }


def _covariate(claim: Claim, nodes: Mapping[str, tuple[str, int]]) -> Row:
    return {
        "id": claim.id,
        "covariate_type": "claim",
        "description": claim.statement,
        "subject_id": nodes[claim.entity_id][0],
        "object_id": nodes[claim.object_id][0] if claim.object_id else "NONE",
        "text_unit_id": claim.chunk_id,
    }


def _place(community: Community, numbers: Mapping[str, int]) -> Row:
    """Return what GraphRAG repeats in the tables of communities and of reports."""
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
        "entity_ids": community.entity_ids,
        "relationship_ids": community.relationship_ids,
        "text_unit_ids": community.chunk_ids,
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
        "text_unit_ids": question.chunk_ids,
        "document_ids": question.document_ids,
        "evidence_ids": question.evidence,
        "share": question.share,
        "model": question.model,
        "duplicate_of": question.duplicate_of,
    }
