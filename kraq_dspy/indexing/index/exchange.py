"""Writes an index out for others as parquet, GraphML or JSON lines, and makes one of what GraphRAG wrote."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.graph.graphrag.read import read_graphrag
from kraq_dspy.asset.graph.networkx_view import write_graphml
from kraq_dspy.asset.store import access
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.tables import TABLES
from kraq_dspy.errors import ConfigError, ExchangeError
from kraq_dspy.indexing.faq.sources import opened_faq
from kraq_dspy.indexing.index.build import Builder
from kraq_dspy.indexing.index.opening import with_labels
from kraq_dspy.indexing.index.report import BuildOptions, BuildReport
from kraq_dspy.records import Claim, Community, Entity, Extraction, Failure, Merge, Relationship, Summary

FORMATS = ("parquet", "graphml", "jsonl")


def export_index(index_dir: str | Path | Index, out: str | Path, format: str = "parquet") -> list[Path]:
    """Write an index as files that other tools read.

    >>> [path.name for path in export_index("ada.kraq", "tables")][:3]
    ['documents.parquet', 'text_units.parquet', 'entities.parquet']

    Args:
        index_dir: the folder of the index, or an opened index, such as `space.scoped(scope).index`. The export of a
            scope has no labels, because labels would name groups outside the scope.
        out: a folder; for "graphml", a file.
        format: "parquet" writes the tables of GraphRAG 3, with GraphRAG's column names, and the questions. "jsonl"
            writes a file for each kind of record, and the FAQ cache if there is one. "graphml" writes the graph.

    Returns:
        The files that were written.

    Raises:
        ConfigError: for another format.
        IndexStateError: if there is no index.
        ScopeError: for the folder of an index with labels.
    """
    if format not in FORMATS:
        raise ConfigError(f"There is no format {format!r}; there are: {', '.join(FORMATS)}.")
    out = Path(out)
    if not isinstance(index_dir, Index):
        with Index.open(Path(index_dir)) as index:
            index.require_no_labels()
            return export_index(index, out, format)
    with access.copied_from(index_dir.path):
        return _export(index_dir, out, format)


def _export(index: Index, out: Path, format: str) -> list[Path]:
    if format == "parquet":
        from kraq_dspy.asset.graph.parquet_tables import write_parquet  # brings pyarrow

        return write_parquet(out, index)
    if format == "graphml":
        path = out / "graph.graphml" if out.is_dir() else out
        links, claims = index.all(Relationship), index.all(Claim)
        return [write_graphml(path, index.all(Entity), links, index.all(Community), claims)]
    written = [
        write_jsonl(out / f"{table.name}.jsonl", index.extractions() if kind is Extraction else index.all(kind))
        for kind, table in TABLES.items()
        if kind is not Failure
    ]
    with opened_faq(index.path) as faq:
        if faq is not None:
            written.append(write_jsonl(out / "faq.jsonl", faq.entries()))
    return written


def write_jsonl(path: Path, records: Iterable[Any]) -> Path:
    """The file `path`, its folder made: UTF-8, a record per line, its fields in their order; half characters (lone
    surrogates), which UTF-8 does not have, become question marks.

    Records are written as they come; the file appears, or is replaced, when all are.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="\n") as lines:
        for record in records:
            json.dump(dataclasses.asdict(record), lines, ensure_ascii=False)
            lines.write("\n")
    return path


GRAPHRAG = "graphrag"
"""The kind of an index's origin, if it was made from GraphRAG's tables."""


def import_graphrag(
    folder: str | Path, out: str | Path, *, replace: bool = False, **options: Unpack[BuildOptions]
) -> BuildReport:
    """Make an index from the output folder of Microsoft GraphRAG, version 2 or 3.

    >>> import_graphrag("graphrag/output", "imported.kraq")  # doctest: +SKIP

    GraphRAG's reports become summaries. kraq writes a question for each summary (KRAQ thesis, 3.2.4), and repeats no
    extraction.

    Args:
        folder: GraphRAG's output, with its tables in parquet.
        out: the folder of the new index.
        replace: as in `build_index`.
        **options: further options of `build_index`. The labels of a document come from `labels`, or from the column
            `settings.corpus.acl_column` of GraphRAG's table of documents.

    Returns:
        The counts of records, calls and seconds, and the failures.

    Raises:
        ExchangeError: if a table or a column is missing. Also the errors of `build_index`.
    """
    return run_coroutine(aimport_graphrag(folder, out, replace=replace, **options))


async def aimport_graphrag(
    folder: str | Path, out: str | Path, *, replace: bool = False, **options: Unpack[BuildOptions]
) -> BuildReport:
    """`import_graphrag` for asynchronous code; takes the same arguments."""
    settings, labels = options.get("settings"), options.get("labels")
    imported = read_graphrag(Path(folder), settings.corpus.acl_column if settings is not None else "")
    documents = []
    for each in with_labels(imported.documents, labels, settings):
        if isinstance(each, Failure):
            raise ExchangeError(f"The document {each.item_id!r} of {str(folder)!r}: {each.reason}")
        documents.append(each)
    async with Builder.at(Path(out), options, folder) as builder:
        index = builder.index
        builder.begin(folder, documents, replace=replace, kind=GRAPHRAG)
        builder.problems.extend(imported.problems)
        builder.keep_documents(documents, imported.chunks)

        index.replace(Entity, imported.entities)
        index.replace(Relationship, imported.relationships)
        index.replace(Claim, imported.claims)
        index.replace(Merge, ())
        index.replace(Community, imported.communities)
        index.replace(Summary, imported.summaries)

        await builder.embed_chunks()
        await builder.ask()
        return builder.report()
