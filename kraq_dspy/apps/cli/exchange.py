"""Writes an index, or its questions with answers, in the formats of others: `kraq export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from kraq_dspy.apps.cli.options import Flag, IndexDir, Json, Scoped, require_writable, require_writable_file
from kraq_dspy.apps.cli.terminal import print_json, say, show_counts
from kraq_dspy.errors import ConfigError

Format = Literal["parquet", "graphml", "jsonl", "dataset"]


@dataclass(frozen=True, kw_only=True)
class Export(Scoped):
    """Write the index as parquet tables in GraphRAG's column names, as GraphML, as JSON lines, or its questions with
    answers and evidence as a data set (JSON lines): to evaluate with, or to learn from."""

    index_dir: IndexDir
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder; for graphml and dataset, a file.")]
    format: Annotated[
        Format,
        typer.Option("--format", "-f", help="parquet has GraphRAG's tables, dataset the questions with answers."),
    ] = "parquet"
    pending: Annotated[bool, Flag("--pending", help="For dataset: also answers that nobody has approved yet.")] = False
    unanswered: Annotated[bool, Flag("--unanswered", help="For dataset: also questions without an answer.")] = False
    json: Json = False

    def run(self) -> None:
        from kraq_dspy.apps.dataset import export_dataset
        from kraq_dspy.indexing.index.exchange import export_index

        if self.format != "dataset" and (self.pending or self.unanswered):
            raise ConfigError(f"--pending and --unanswered go with --format dataset, not with {self.format}.")
        (require_writable_file if self.format in ("graphml", "dataset") else require_writable)(self.out)
        if self.format == "dataset":
            with self.readable(self.index_dir) as index:
                report = export_dataset(index, self.out, pending=self.pending, unanswered=self.unanswered)
            if self.json:
                print_json(report)
            else:
                show_counts("Data set", report)
            return
        with self.readable(self.index_dir) as index:
            written = export_index(index, self.out, self.format)
        if self.json:
            print_json([str(path) for path in written])
        else:
            for path in written:
                say(path)
