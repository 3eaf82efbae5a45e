"""`kraq eval TABLE`: one of the papers' tables, or one of your own, run over data sets."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.cli.research.eval.options import Baseline, Bertscore, Data, RunOut
from kraq_dspy.cli.research.report import make_report
from kraq_dspy.cli.shared.bars import Bars
from kraq_dspy.cli.shared.options import Builds, Json
from kraq_dspy.cli.shared.writable import require_writable
from kraq_dspy.errors import ConfigError

TABLES = ("questions", "combined", "speculative", "retrievers", "qa_rag", "k2rag")


def table(
    table: Annotated[str, typer.Argument(metavar="TABLE", help=f"{', '.join(TABLES)}, or a TOML file.")],
    data: Data,
    builds: Builds,
    bertscore: Bertscore,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", "-d", help="Only this data set; may be repeated. Default: the table's."),
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option("--tokens", min=1, help="The papers' sample: questions until their evidence has so many tokens."),
    ] = None,
    out: RunOut = None,
    indexes: Annotated[
        Path, typer.Option("--indexes", metavar="DIR", help="Where indexes of data sets are kept and found again.")
    ] = Path("runs/indexes"),
    baseline: Baseline = None,
    ablations: Annotated[bool, typer.Option(help="Also the systems with one setting varied.")] = True,
    program_state: Annotated[
        list[Path] | None,
        typer.Option(
            "--program-state",
            metavar="(SYSTEM=)FILE",
            help="What `kraq optimize` made, into the program of a system, or of all; may be repeated.",
        ),
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again where a row failed.")] = False,
    json: Json = False,
) -> None:
    """Run a table over data sets: index them, ask every system every question, write rows and a report."""
    from kraq_dspy.eval.tables.data import dataset_names
    from kraq_dspy.eval.tables.run import RunOptions, run_table
    from kraq_dspy.eval.tables.table import read_table

    definition = read_table(_file(table))
    if baseline is not None:
        definition = definition.against(baseline)
    for state in program_state or ():
        definition = definition.with_state(state)
    if builds.concurrency is not None:
        definition = dataclasses.replace(definition, concurrency=builds.concurrency)
    options = RunOptions(
        data=data.data,
        out=out or Path("runs") / definition.name,
        indexes=indexes,
        limit=data.limit,
        tokens=tokens,
        seed=data.seed,
        ablations=ablations,
        retry_failed=retry_failed,
        bertscore=bertscore.scorer,
    )
    settings = builds.settings()
    names = dataset_names(data.data, dataset or (), definition.datasets)
    require_writable(options.out, indexes)
    with Bars(settings, quiet=json) as bars:
        run_table(definition, names, settings, options, bars)
    make_report(options.out, None, data.seed, json=json)


def _file(name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    if name not in TABLES:
        raise ConfigError(f"There is no table {name!r}; there are: {', '.join(TABLES)}, or name a TOML file.")
    return Path(__file__).resolve().parents[3] / "eval" / "tables" / "definitions" / f"{name}.toml"
