"""`kraq export`: an index in the formats of other systems."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.cli.shared.options import IndexDir, Json
from kraq_dspy.cli.shared.terminal import print_json, say
from kraq_dspy.cli.shared.writable import require_writable


class Format(StrEnum):
    parquet = "parquet"
    graphml = "graphml"
    jsonl = "jsonl"


def export(
    index_dir: IndexDir,
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder; for graphml, a file.")],
    format: Annotated[Format, typer.Option("--format", "-f", help="parquet has GraphRAG's tables.")] = Format.parquet,
    json: Json = False,
) -> None:
    """Write the index as parquet tables in GraphRAG's column names, as GraphML, or as JSON lines."""
    from kraq_dspy.indexing.export import export_index

    require_writable(out if format is not Format.graphml else out.parent)
    written = export_index(index_dir, out, format.value)
    if json:
        print_json([str(path) for path in written])
    else:
        for path in written:
            say(path)
