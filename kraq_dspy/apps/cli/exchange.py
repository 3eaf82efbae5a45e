"""Writes an index in the formats of others: `kraq export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

from kraq_dspy.apps.cli.options import IndexDir, Json, require_writable, require_writable_file
from kraq_dspy.apps.cli.terminal import note, output, print_json, say, two_columns
from kraq_dspy.errors import ConfigError

if TYPE_CHECKING:
    from kraq_dspy.apps.dataset.export import DatasetPlan, DatasetReport


Format = Literal["parquet", "graphml", "jsonl", "dataset"]


@dataclass(frozen=True)
class DatasetOptions:
    """`kraq_dspy.apps.dataset.export.DatasetPlan` as options."""

    PANEL: ClassVar[str] = "Data set (--format dataset)"

    form: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="hf (the default), ragas, beir or finetune; may be repeated."),
    ] = None
    pending: Annotated[bool, typer.Option(help="Also answers that nobody has approved yet.")] = False
    unanswered: Annotated[bool, typer.Option(help="Also questions without an answer.")] = False
    passages: Annotated[int, typer.Option(min=1, help="Of evidence, at most, for each row.")] = 20
    licence: Annotated[str, typer.Option(help="Of the documents, for the card.")] = "unknown"
    shares: Annotated[str, typer.Option(metavar="X,X,X", help="Of the rows for train, validation and test.")] = (
        "0.8,0.1,0.1"
    )
    seed: Annotated[int, typer.Option(help="Of the splits.")] = 0

    def plan(self) -> "DatasetPlan":
        """Raises ConfigError."""
        from kraq_dspy.apps.dataset.export import DatasetPlan

        try:
            train, validation, test = (float(part) for part in self.shares.split(","))
        except ValueError:
            raise ConfigError(f"--shares is {self.shares!r}; expected three numbers, such as 0.8,0.1,0.1.") from None
        return DatasetPlan(
            forms=tuple(dict.fromkeys(self.form or ["hf"])),
            pending=self.pending,
            unanswered=self.unanswered,
            passages=self.passages,
            shares=(train, validation, test),
            seed=self.seed,
            licence=self.licence,
        )


def export(
    index_dir: IndexDir,
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder; for graphml, a file.")],
    dataset: DatasetOptions,
    format: Annotated[
        Format,
        typer.Option("--format", "-f", help="parquet has GraphRAG's tables, dataset the questions with answers."),
    ] = "parquet",
    json: Json = False,
) -> None:
    """Write the index as parquet tables in GraphRAG's column names, as GraphML, as JSON lines, or its questions with
    answers and evidence as a data set: for evaluation (Hugging Face, Ragas, BEIR) or for `kraq finetune`."""
    from kraq_dspy.build.index.exchange import export_index

    if format != "dataset" and dataset != DatasetOptions():
        raise ConfigError(f"Options of a data set go with --format dataset, not with {format}.")
    (require_writable_file if format == "graphml" else require_writable)(out)
    if format == "dataset":
        from kraq_dspy.apps.dataset.export import export_dataset
        from kraq_dspy.asset.store.index import Index

        plan = dataset.plan()
        with Index.open(index_dir) as index:
            _show(export_dataset(index, out, plan), out, json=json)
        return
    written = export_index(index_dir, out, format)
    if json:
        print_json([str(path) for path in written])
    else:
        for path in written:
            say(path)


def _show(report: "DatasetReport", out: Path, *, json: bool) -> None:
    if json:
        print_json(report)
        return
    rows = {
        **report.rows,
        **{f"left out, {reason}": count for reason, count in report.left_out.items() if count},
        "card": out / "README.md",
    }
    output.print(two_columns("Rows", rows))
    if len(report.rows) < 3:
        note("the documents hang together too closely for three splits; see the card.")
