"""Reads GraphRAG's documents and text units: a text unit becomes a chunk, which is a span of its document."""

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kraq_dspy.asset.corpus.chunk import chunks_at
from kraq_dspy.asset.graph.graphrag.tables import Row, Tables, text_of, texts_of
from kraq_dspy.asset.label_names import label_column
from kraq_dspy.asset.scope import labels_of
from kraq_dspy.errors import CorpusError, ExchangeError
from kraq_dspy.records import Chunk, Document, Metadata

BETWEEN = "\n\n"
"""What stands between text units where their document's text is put together from them."""

OUR_OWN = frozenset({"id", "title", "text", "text_unit_ids"})
"""Fields that a document has anyway."""


@dataclass(frozen=True)
class TextUnit:
    """A row of GraphRAG's table, under its id there."""

    id: str
    text: str


@dataclass
class Texts:
    """Documents and their chunks, in reading order; `chunk_ids` are ours by the ids of text units."""

    documents: list[Document] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    chunk_ids: dict[str, str] = field(default_factory=dict)

    def order(self) -> dict[str, int]:
        """The place of each chunk, by its id."""
        return {chunk.id: place for place, chunk in enumerate(self.chunks)}


def read_texts(tables: Tables, problems: Counter[str], acl_column: str = "") -> Texts:
    """All documents with their chunks, and with the labels in `acl_column`, or in the column that our own export wrote.

    What is wrong with them is counted in `problems`. Raises ExchangeError for a column that is not there.
    """
    documents = _documents(tables, acl_column)
    units = _units_by_document(tables, documents, problems)
    texts = Texts()
    for document in documents.values():
        _add(texts, document, units[document.id], problems)
    return texts


def _documents(tables: Tables, acl_column: str) -> dict[str, Document]:
    if not tables.has("documents"):
        if acl_column:
            raise ExchangeError(
                f"{tables.folder.name!r} has no table 'documents', so no column {acl_column!r} with labels of who may "
                "read them."
            )
        return {}

    documents = {}
    for row in tables.rows("documents", ["id", acl_column] if acl_column else ["id"]):
        id, title = text_of(row["id"]), text_of(row.get("title"))
        text = text_of(row.get("text"))
        source = title or tables.folder.name
        documents[id] = Document(id, title, text, source, _metadata(row), labels=_labels(row, acl_column))
    return documents


def _labels(row: Row, acl_column: str) -> tuple[str, ...]:
    try:
        column = label_column(map(str, row), acl_column)
        value = row[column] if column else []
        if value == [] and not acl_column:  # an export without labels has an empty list
            return ()
        return labels_of(value)
    except CorpusError as error:
        raise ExchangeError(f"The document {text_of(row['id'])!r} in the table 'documents': {error}") from None


def _units_by_document(
    tables: Tables, documents: dict[str, Document], problems: Counter[str]
) -> Mapping[str, list[TextUnit]]:
    """The text units of each document; one that is in no table is added to `documents`, without a text."""
    units: dict[str, list[TextUnit]] = defaultdict(list)
    for row in tables.rows("text_units", ["id", "text"]):
        text = text_of(row["text"])
        if not text.strip():
            problems["text units without text, left out"] += 1
            continue

        owner, title = _owner(row)
        if owner not in documents:
            documents[owner] = Document(owner, title, "", title or tables.folder.name)
            problems[
                "documents missing from the table of documents, their text put together from their text units"
            ] += 1
        units[owner].append(TextUnit(text_of(row["id"]), text))

    return units


def _owner(row: Row) -> tuple[str, str]:
    """(id, title) of the document of a text unit; units without either are documents of their own.

    Version 3 writes one `document_id`, earlier ones a list.
    """
    title = text_of(row.get("title"))
    several = texts_of(row.get("document_ids"))
    id = text_of(row.get("document_id")) or (several[0] if several else "")
    return id or title or text_of(row["id"]), title


def _add(texts: Texts, document: Document, units: list[TextUnit], problems: Counter[str]) -> None:
    """The document with its chunks in reading order."""
    places = {unit.id: document.text.find(unit.text) for unit in units}
    if min(places.values(), default=-1) >= 0:
        units = sorted(units, key=lambda unit: places[unit.id])

    passages = [unit.text for unit in units]
    spans = _spans(document.text, passages)
    if spans is None:  # GraphRAG may put a title before each text unit
        if document.text:
            problems[
                "documents that do not contain their text units literally, their text put together from these"
            ] += 1
        document = dataclasses.replace(document, text=BETWEEN.join(passages))
        spans = _spans_end_to_end(passages)

    chunks = chunks_at(document, spans)
    texts.documents.append(document)
    texts.chunks.extend(chunks)
    texts.chunk_ids.update(zip((unit.id for unit in units), (chunk.id for chunk in chunks), strict=True))


def _spans(text: str, passages: Sequence[str]) -> list[tuple[int, int]] | None:
    """Tell where the passages stand in the text, one after the other; None if one of them does
    not."""
    spans: list[tuple[int, int]] = []
    search_from = 0
    for passage in passages:
        start = text.find(passage, search_from)
        if start < 0:
            return None
        spans.append((start, start + len(passage)))
        search_from = start + 1  # passages may overlap
    return spans


def _spans_end_to_end(passages: Sequence[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    for passage in passages:
        spans.append((start, start + len(passage)))
        start += len(passage) + len(BETWEEN)
    return spans


def _metadata(row: Row) -> Metadata:
    """`metadata` (version 2) or `raw_data` (3), where they hold plain values, and the date of creation."""
    fields: dict[str, Any] = {}
    for column in ("metadata", "raw_data"):
        fields.update(_object_in(row.get(column)))
    if text_of(row.get("creation_date")):
        fields["creation_date"] = text_of(row["creation_date"])

    plain = {str(name): value for name, value in fields.items() if isinstance(value, str | int | float | bool)}
    return {name: value for name, value in plain.items() if name not in OUR_OWN}


def _object_in(value: Any) -> Mapping[str, Any]:
    """A cell as an object, also if it is written as JSON; empty if it is none."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
