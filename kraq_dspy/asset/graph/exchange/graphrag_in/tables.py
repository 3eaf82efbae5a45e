"""Finds the tables of an import, and reads its documents and text units."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy.asset.graph.exchange.rows import (
    SUFFIXES,
    Row,
    document_of_passages,
    find_table,
    read_rows,
    require_columns,
    text_of,
)
from kraq_dspy.errors import ExchangeError
from kraq_dspy.records import Chunk, Document, Metadata

# Names of each table without suffix, the newest first.
TABLES = {
    "entities": ("entities", "create_final_entities"),
    "relationships": ("relationships", "create_final_relationships"),
    "communities": ("communities", "create_final_communities"),
    "community_reports": ("community_reports", "create_final_community_reports"),
    "text_units": ("text_units", "create_final_text_units", "corpus"),
    "documents": ("documents", "create_final_documents"),
    "covariates": ("covariates", "create_final_covariates", "claims"),
    "nodes": ("create_final_nodes",),
}
OPTIONAL = {"documents", "covariates", "nodes"}


@dataclass(frozen=True)
class Tables:
    """The files of an import by the names of their tables."""

    folder: Path
    paths: Mapping[str, Path]

    @classmethod
    def at(cls, folder: Path) -> "Tables":
        if not folder.is_dir():
            raise ExchangeError(f"There is no folder {str(folder)!r}. Give GraphRAG's output folder.")
        for place in _places(folder):
            paths = {table: find_table(place, names) for table, names in TABLES.items()}
            if paths["entities"]:
                break
        else:
            there = ", ".join(sorted(repr(path.name) for path in folder.iterdir())[:20]) or "nothing"
            raise ExchangeError(
                f"{folder.name!r} has no table 'entities' or 'create_final_entities' ({', '.join(SUFFIXES)}), "
                f"neither itself nor in 'output'; it has: {there}. Give GraphRAG's output folder."
            )
        missing = [table for table, path in paths.items() if path is None and table not in OPTIONAL]
        if missing:
            there = ", ".join(repr(path.name) for path in paths.values() if path)
            raise ExchangeError(f"{place.name!r} lacks the table {', '.join(map(repr, missing))}; it has: {there}.")
        return cls(place, {table: path for table, path in paths.items() if path})

    def has(self, table: str) -> bool:
        return table in self.paths

    def rows(self, table: str, columns: Sequence[str | tuple[str, ...]]) -> Iterator[Row]:
        """Raises ExchangeError where the first row lacks one of `columns`."""
        path = self.paths[table]
        for number, row in enumerate(read_rows(path)):
            if number == 0:
                require_columns(path, row, columns)
            yield row


def _places(folder: Path) -> Iterator[Path]:
    """Where the tables may be; of several runs (output/TIME/artifacts, versions before 1.0) the latest first."""
    for base in (folder, folder / "output"):
        yield base
        yield base / "artifacts"
        if base.is_dir():
            for run in sorted((path for path in base.iterdir() if path.is_dir()), reverse=True):
                yield run
                yield run / "artifacts"


class Texts:
    """Documents and chunks; `chunk_ids` are ours by the ids of text units."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.chunks: list[Chunk] = []
        self.chunk_ids: dict[str, str] = {}

    def order(self) -> dict[str, int]:
        return {chunk.id: place for place, chunk in enumerate(self.chunks)}

    @classmethod
    def of(cls, tables: Tables, problems: Counter[str]) -> "Texts":
        texts = cls()
        source = tables.folder.name
        documents: dict[str, Document] = {}
        if tables.has("documents"):
            for row in tables.rows("documents", ["id"]):
                title = text_of(row.get("title"))
                text = text_of(row.get("text")) or text_of(row.get("raw_content"))
                document = Document(text_of(row["id"]), title, text, title or source, _metadata(row))
                documents[document.id] = document
        units: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for row in tables.rows("text_units", ["id", "text"]):
            text = text_of(row["text"])
            if not text.strip():
                problems["text units without text were left out"] += 1
                continue
            owner, title = _owner(row)
            if owner not in documents:
                documents[owner] = Document(owner, title, "", title or source)
                problems["documents are not in the table of documents: their text is that of their text units"] += 1
            units[owner].append((text_of(row["id"]), text))
        for id, document in documents.items():
            places = {unit_id: document.text.find(text) for unit_id, text in units[id]}
            if min(places.values(), default=-1) >= 0:
                units[id].sort(key=lambda unit: places[unit[0]])
            ids = [unit_id for unit_id, _ in units[id]]
            whole, chunks, kept = document_of_passages(document, [text for _, text in units[id]])
            if document.text and not kept:
                problems["documents do not contain their text units literally: their text is that of the units"] += 1
            texts.documents.append(whole)
            texts.chunks.extend(chunks)
            texts.chunk_ids.update(zip(ids, (chunk.id for chunk in chunks), strict=True))
        return texts


def _owner(row: Row) -> tuple[str, str]:
    """(id, title) of the document of a text unit; units without either are documents of their own."""
    title = text_of(row.get("title"))
    ids = listed_texts(row.get("document_ids"))
    return text_of(row.get("document_id")) or (ids[0] if ids else "") or title or text_of(row["id"]), title


def _metadata(row: Row) -> Metadata:
    """`metadata` (2.x) or `raw_data` (3.x), where they hold plain values, and the date of creation."""
    fields: dict[str, Any] = {}
    for column in ("metadata", "raw_data"):
        value = row.get(column)
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                continue
        if isinstance(value, dict):
            fields.update(value)
    if text_of(row.get("creation_date")):
        fields["creation_date"] = text_of(row["creation_date"])
    plain = {str(key): value for key, value in fields.items() if isinstance(value, str | int | float | bool)}
    return {key: value for key, value in plain.items() if key not in ("id", "title", "text", "text_unit_ids")}


def listed_texts(value: Any) -> list[str]:
    return [text_of(each) for each in value] if isinstance(value, list) else []
