"""Runs a table over data sets: one of the papers, of this library, or of your own: `kraq bench TABLE`."""

import dataclasses
from pathlib import Path
from typing import Annotated

from rich.padding import Padding
from rich.text import Text
from typer import Argument, Option

from kraq_dspy.apps.cli.commands import TABLES
from kraq_dspy.apps.cli.evaluate import Baseline, make_report, named_scorer
from kraq_dspy.apps.cli.model_options import Builds, with_sections
from kraq_dspy.apps.cli.options import DataDir, Flag, Json, Repeated, Seed, command_class, require_writable
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.scoring import RetryFailed, RunOut
from kraq_dspy.apps.cli.terminal import note, output, print_json, say
from kraq_dspy.asset.consent import asked_about, code, table_file
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.reports.summary import require_rows
from kraq_dspy.optimize.domain import describe_domain
from kraq_dspy.papers.catalogue import paper_table
from kraq_dspy.papers.listing import listed
from kraq_dspy.papers.tables.data import dataset_names
from kraq_dspy.papers.tables.run import RunOptions
from kraq_dspy.papers.tables.run_table import run_table
from kraq_dspy.papers.tables.systems import settings_of
from kraq_dspy.papers.tables.table import DEFINITIONS, EvalTable, System, read_table
from kraq_dspy.settings import Settings

JUDGES = ("none", "binary", "rubric")
INDEXES = Path("runs/indexes")
"""The folder that keeps the indexes of data sets."""


@command_class
class RunTable(Builds):
    """Run a table over data sets: index, ask every system, report."""

    table: Annotated[str, Argument(metavar="TABLE", help="An id of `kraq bench list`, a comparison, or a file.")]
    data: DataDir = Path("data")
    limit: Annotated[
        int | None,
        Option(
            min=1,
            help="Questions of each data set; a larger number resumes a smaller one.",
        ),
    ] = None
    seed: Seed = 0
    bertscore: Annotated[
        str,
        Option(metavar="MODEL", help="roberta-large, minilm, a hub name, or FOLDER:LAYER."),
    ] = "roberta-large"
    dataset: Annotated[
        Repeated,
        Option("--dataset", "-d", help="Only this data set; may be repeated. Default: the table's."),
    ] = None
    tokens: Annotated[
        int | None, Option(min=1, help="The papers' sample: questions with evidence of so many tokens.")
    ] = None
    paper: Annotated[bool, Flag("--paper", help="The paper's own settings, options and numbers of questions.")] = False
    judge: Annotated[
        str | None, Option(help="Judge of the answers: none, binary, or rubric (4 and 5 of 5 are right).")
    ] = None
    metric: Annotated[Repeated, Option(help="A column more; may be repeated.")] = None
    without: Annotated[
        Repeated,
        Option(metavar="METRIC", help="Leave this column out, such as meteor (WordNet); may be repeated."),
    ] = None
    out: RunOut = None
    baseline: Baseline = None
    ablations: Annotated[bool, Option(metavar="", help="Also the systems with one setting varied.")] = True
    optimized: Annotated[
        list[Path] | None,
        Option(
            metavar="(SYSTEM=)FILE",
            help="Program or step that `kraq optimize` saved, for one system or all; repeatable.",
        ),
    ] = None
    retry_failed: RetryFailed = False
    strict_generator: Annotated[
        bool,
        Flag(
            "--strict-generator",
            help="Exit code 1 if templates ask for more than half of the generator's questions.",
            rich_help_panel="For a build server",
        ),
    ] = False
    json: Json = False

    def run(self) -> None:
        definition = self._definition()
        settings = self.settings()
        names = dataset_names(self.data, self.dataset or (), definition.datasets)
        samples: dict[str, int | None] = {}
        tokens = self.tokens
        if self.paper:
            definition = definition.as_in_paper()
            settings = with_sections(settings, definition.as_paper.settings if definition.as_paper else {})
            tokens = self.tokens or definition.paper.tokens
            samples = {name: definition.paper.sample(name) for name in names}
        is_file = "/" in self.table or self.table.endswith(".toml")
        folder = f"{definition.name if is_file else self.table}{'-paper' if self.paper else ''}"
        options = RunOptions(
            data=self.data,
            out=self.out or Path("runs") / folder,
            indexes=INDEXES,
            limit=self.limit,
            samples=samples,
            tokens=tokens,
            seed=self.seed,
            ablations=self.ablations,
            retry_failed=self.retry_failed,
            strict_generator=self.strict_generator,
            tell=note,
            describe=describe_domain,
            bertscore=lambda: named_scorer(self.bertscore),
        )
        require_writable(options.out, INDEXES)
        with Bars(settings, quiet=self.json) as bars:
            run_table(definition, names, settings, options, bars)
        require_rows(make_report(options.out, None, self.seed, json=self.json).runs)

    def _definition(self) -> EvalTable:
        """The table as it stands in its file, with what the options change."""
        definition = read(self.table)
        if self.table.endswith(".toml"):
            self._require_agreed_table(Path(self.table), definition)
        if self.baseline is not None:
            definition = definition.against(self.baseline)
        for state in self.optimized or ():
            definition = definition.with_state(state)
        if self.concurrency is not None:
            definition = dataclasses.replace(definition, concurrency=self.concurrency)
        return without_metrics(with_metrics(definition, self.judge, self.metric or ()), self.without or ())

    def _require_agreed_table(self, path: Path, table: EvalTable) -> None:
        """Raises UntrustedError for servers, models and code that the file names, and which nobody agreed to."""

        places = [code("metrics", metric) for metric in table.metrics if ":" in metric]
        of_paper = System("paper", "", {"settings": table.paper.settings})
        for system in (of_paper, *table.systems):
            places += asked_about(settings_of(system, Settings()))
        self.require_agreed(table_file(path), list(dict.fromkeys(places)))


def without_metrics(table: EvalTable, left_out: list[str] | tuple[str, ...]) -> EvalTable:
    """Leave columns out. Raises ConfigError for one that the table does not have, and if none is left."""
    if unknown := sorted(set(left_out) - set(table.metrics)):
        raise ConfigError(f"--without {unknown[0]}: the table has no such column; it has: {', '.join(table.metrics)}.")
    metrics = tuple(metric for metric in table.metrics if metric not in left_out)
    if not metrics:
        raise ConfigError(f"--without leaves no column of {', '.join(table.metrics)}.")
    return dataclasses.replace(table, metrics=metrics)


def read(name: str) -> EvalTable:
    """The table of a file, a comparison of this library, or what a paper's table needs of one.

    Raises ConfigError for a name that there is not, and for a figure that another command makes.
    """

    if name.endswith(".toml"):
        return read_table(Path(name))
    if name in TABLES:
        return read_table(DEFINITIONS / f"{name}.toml")
    figure = paper_table(name)
    if not figure.definition:
        other = figure.command or "none: people judged"
        raise ConfigError(f"`kraq bench` cannot run {figure.paper}, {figure.number}. Its command: {other}.")
    return read_table(DEFINITIONS / f"{figure.definition}.toml").for_paper(figure)


def with_metrics(table: EvalTable, judge: str | None, more: list[str] | tuple[str, ...]) -> EvalTable:
    """Put another judge, or none, in place of the table's, and add columns. Raises ConfigError."""
    metrics = list(table.metrics)
    if judge is not None:
        if judge not in JUDGES:
            raise ConfigError(f"There is no judge {judge!r}; there are: {', '.join(JUDGES)}.")
        if table.kind != "answers":
            raise ConfigError(f"A judge judges answers; {table.name!r} is a table of {table.kind}.")
        metrics = [metric for metric in metrics if metric not in ("judge", "rubric")]
        metrics += {"none": [], "binary": ["judge"], "rubric": ["rubric"]}[judge]
    return dataclasses.replace(table, metrics=tuple(dict.fromkeys((*metrics, *more))))


@command_class
class ListTables:
    """List the papers' tables and figures, and which have a report.

    It shows what each shows and needs, and the command that runs it.
    """

    paper: Annotated[
        list[str] | None, Option(help="Only of this one: kraq, qa-rag, k2rag, qa-search; may be repeated.")
    ] = None
    runs: Annotated[Path, Option(metavar="DIR", help="Folder of the reports.")] = Path("runs")
    json: Json = False

    def run(self) -> None:
        tables = listed(self.runs, self.paper or ())
        if not tables:
            raise ConfigError(
                f"No paper is called {', '.join(self.paper or ())}; there are: kraq, qa-rag, k2rag, qa-search."
            )
        if self.json:
            names = ("id", "paper", "number", "shows", "needs", "datasets", "command")
            print_json(
                [
                    {**{n: getattr(table, n) for n in names}, "report": report and str(report)}
                    for table, report in tables
                ]
            )
            return
        for table, report in tables:
            say(
                (f"{table.command}  ", "bold"),
                f"{table.paper}, {table.number}",
                (f"  {report}", "green") if report else "",
            )
            for line in filter(None, (table.shows, table.needs and f"needs {table.needs}")):
                output.print(Padding(Text(line, style="dim"), (0, 0, 0, 4)), width=min(output.width, 80))
        say(f"{sum(report is not None for _, report in tables)} of {len(tables)} have a report under {self.runs}.")
