"""Writes an index in the formats of others (`kraq export`), and makes one of GraphRAG's (`kraq import`)."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from kraq_dspy.apps.cli.index import index_beside, say_what_to_try
from kraq_dspy.apps.cli.model_options import AclColumn, Builds, Limits
from kraq_dspy.apps.cli.options import (
    Flag,
    IndexDir,
    Json,
    NewIndex,
    Scoped,
    command_class,
    require_writable,
    require_writable_file,
)
from kraq_dspy.apps.cli.progress import run_build
from kraq_dspy.apps.cli.terminal import note, print_json, say, show_counts
from kraq_dspy.apps.dataset import export_dataset
from kraq_dspy.errors import ConfigError
from kraq_dspy.indexing.index.exchange import export_index, import_graphrag

Format = Literal["parquet", "graphml", "jsonl", "dataset"]


@command_class
class Export(Scoped):
    """Write the index as tables, a graph, JSON lines or a data set.

    parquet has tables in GraphRAG's column names; the data set has its questions with answers and evidence, as JSON
    lines, to learn from. The data set's questions stand for whole communities, and may have dozens of documents:
    `kraq testset make` writes questions with answers and gold passages to measure with.
    """

    index_dir: IndexDir
    out: Annotated[Path, Option("--out", "-o", help="A folder; for graphml and dataset, a file.")]
    format: Annotated[
        Format,
        Option("--format", "-f", help="parquet has GraphRAG's tables, dataset the questions with answers."),
    ] = "parquet"
    pending: Annotated[bool, Flag("--pending", help="For dataset: also answers that nobody has approved yet.")] = False
    unanswered: Annotated[bool, Flag("--unanswered", help="For dataset: also questions without an answer.")] = False
    json: Json = False

    def run(self) -> None:
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
                note(" have few gold passages and an answer each: kraq testset make", label="Questions to measure with")
            return
        with self.readable(self.index_dir) as index:
            written = export_index(index, self.out, self.format)
        if self.json:
            print_json([str(path) for path in written])
        else:
            for path in written:
                say(path)


@command_class
class ImportGraphRAG(Builds, Limits):
    """Make an index of what Microsoft GraphRAG (version 2 or 3) wrote.

    Its reports become summaries, and those questions. Nothing is extracted or summarised again.
    """

    folder: Annotated[Path, Argument(help="GraphRAG's project or output folder, with its parquet files.")]
    out: NewIndex = None
    replace: Annotated[bool, Flag("--replace", help="Remove documents of DIR that FOLDER does not have.")] = False
    acl_column: AclColumn = None
    json: Json = False

    def run(self) -> None:
        out = self.out or index_beside(self.folder)
        imported = partial(import_graphrag, self.folder, out, replace=self.replace)
        report = run_build(imported, self.settings(), self, json=self.json)
        if not self.json:
            say_what_to_try(out, report)
