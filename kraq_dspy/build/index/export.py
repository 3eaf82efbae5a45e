"""Writes an index out for others: GraphRAG's parquet tables, GraphML, or JSON lines."""

from contextlib import closing
from pathlib import Path

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.tables import TABLES
from kraq_dspy.build.catalogue.sources import open_catalogue
from kraq_dspy.errors import ConfigError
from kraq_dspy.records import CatalogueEntry, Claim, Community, Entity, Extraction, Failure, Relationship

FORMATS = ("parquet", "graphml", "jsonl")


def export_index(index_dir: str | Path, out: str | Path, format: str = "parquet") -> list[Path]:
    """Write the index at `index_dir` to `out`, a folder (for "graphml", a file), and name the files written.

    "parquet" has the tables of GraphRAG 3 in its column names and the questions beside them; "jsonl" has every record
    kind of this library, one file each, and the catalogue if there is one. Raises ConfigError for another format,
    IndexStateError for no index.
    """
    if format not in FORMATS:
        raise ConfigError(f"There is no format {format!r}; there are: {', '.join(FORMATS)}.")
    with Index.open(Path(index_dir)) as index:
        return _WRITERS[format](index, Path(out))


def _parquet(index: Index, out: Path) -> list[Path]:
    from kraq_dspy.asset.graph.exchange.graphrag_out import write_graphrag  # brings pyarrow

    return write_graphrag(out, index)


def _graphml(index: Index, out: Path) -> list[Path]:
    from kraq_dspy.asset.graph.exchange.graphml_out import write_graphml

    path = out / "graph.graphml" if out.is_dir() else out
    return [write_graphml(path, index.all(Entity), index.all(Relationship), index.all(Community), index.all(Claim))]


def _jsonl(index: Index, out: Path) -> list[Path]:
    from kraq_dspy.asset.graph.exchange.jsonl_out import write_jsonl

    written = [
        write_jsonl(out / f"{table.name}.jsonl", kind, index.extractions() if kind is Extraction else index.all(kind))
        for kind, table in TABLES.items()
        if kind is not Failure
    ]
    if (catalogue := open_catalogue(index.path)) is not None:
        with closing(catalogue):
            written.append(write_jsonl(out / "catalogue.jsonl", CatalogueEntry, catalogue.entries()))
    return written


_WRITERS = {"parquet": _parquet, "graphml": _graphml, "jsonl": _jsonl}
