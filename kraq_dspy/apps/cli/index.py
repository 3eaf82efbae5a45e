"""Leads from a corpus to an index of representative questions: `kraq index`."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from kraq_dspy.apps.cli.model_options import Builds, Columns, Limits, ModelOption, Sets, TakesStates, with_sections
from kraq_dspy.apps.cli.options import Flag, Json, NewIndex, command_class
from kraq_dspy.apps.cli.progress import label, run_build
from kraq_dspy.apps.cli.terminal import command, compact, counted, grid, note, output, print_json, say, short
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, RemovedDocumentsError
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.indexing.index.change import resume_index
from kraq_dspy.indexing.index.estimate import LEAST, MOST, estimate_corpus, estimate_index
from kraq_dspy.indexing.index.report import BuildReport
from kraq_dspy.models.lms.meter import Meter
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.optimize import describe_domain
from kraq_dspy.records import Usage
from kraq_dspy.settings import EMBEDDED, Settings


@command_class
class BuildIndex(TakesStates, Builds, Limits, Columns):
    """Index CORPUS: graph, communities, summaries, and a question for each.

    Run it again to resume an interrupted run, to retry what failed, or to bring the index up to date with the
    corpus. `kraq index DIR`, with an index in place of a corpus, resumes it as it was begun.
    """

    corpus: Annotated[
        Path,
        Argument(metavar="CORPUS", help="A file or folder of txt, md, html, pdf, jsonl, csv or parquet; or an index."),
    ]
    out: NewIndex = None
    random_questions: Annotated[
        bool, Flag("--random-questions", help="Also make the papers' baseline: questions from random passages.")
    ] = False
    replace: Annotated[bool, Flag("--replace", help="Remove documents of DIR that this corpus does not have.")] = False
    runner: Annotated[
        str | None,
        ModelOption(help="Place of model calls: local, or ray (a cluster; kraq.toml, section run)."),
        Sets("run", "runner"),
    ] = None
    redact: Annotated[
        bool,
        ModelOption(
            "--redact",
            metavar="",
            help="Strike e-mail addresses, phone and card numbers out (kraq.toml, section redact).",
        ),
    ] = False
    dry_run: Annotated[
        bool, Flag("--dry-run", help="Only estimate calls, tokens and money, without asking a model.")
    ] = False
    domain: Annotated[
        bool,
        Flag("--domain", help="Only ask a model for a persona and types of entities for kraq.toml."),
    ] = False
    json: Json = False

    def settings(self, base: Settings | None = None) -> Settings:
        settings = super().settings(base)
        if self.redact:
            return with_sections(settings, {"redact": dict.fromkeys(("emails", "phones", "cards"), True)})
        return settings

    def run(self) -> None:
        is_index = (self.corpus / "manifest.json").is_file()
        if self.dry_run:
            self._estimate(is_index)
        elif self.domain:
            self._describe_domain()
        elif is_index:
            self._resume()
        else:
            self._build()

    def _resume(self) -> None:
        if self.out or self.replace or self.random_questions or self.optimized:
            raise ConfigError(
                f"{str(self.corpus)!r} is an index, which is finished as it was begun: without --out, --replace, "
                "--random-questions and --optimized."
            )
        settings = self.settings_of(self.corpus)
        run_build(partial(resume_index, self.corpus), settings, self, json=self.json)

    def _describe_domain(self) -> None:
        self.require_asked("index --domain", "describing")
        settings = self.settings()
        if settings.role("extractor").model == EMBEDDED:
            note("the embedded model only guesses: name a model with --lm.")
        models = LanguageModels(settings, meter=Meter(self.limits(settings)), states=self.states())
        typer.echo(describe_domain(self.corpus, settings, lm=models).to_toml())

    def _estimate(self, is_index: bool) -> None:
        if is_index:
            result = estimate_index(self.corpus, self.settings_of(self.corpus))
        else:
            result = estimate_corpus(self.corpus, self.settings())
        if self.json:
            print_json({"estimate": result, "expected": result.expected, "cost": result.cost})
            return

        documents, passages = counted(result.documents, "document"), counted(result.chunks, "passage")
        say(f"{self.corpus}: {documents}, {passages}, {compact(result.corpus_tokens)} tokens")
        rows = [
            (label(stage.stage), short(stage.model, 30), *_cells(stage.expected, stage.cost)) for stage in result.stages
        ]
        numbers = ("calls", "tokens in", "tokens out", "cost")
        table = grid("", ("stage", "model", *numbers), rows, right=numbers)
        table.add_section()
        table.add_row("together", "", *_cells(result.expected, result.cost), style="bold")
        output.print(table)

        first = label(result.stages[0].stage)
        say(f"Number of calls exact, save for retries: {first}. The rest is a guess: {LEAST} to {MOST} times as many.")
        if result.cost is None:
            say("For money, give the roles prompt_price and completion_price in kraq.toml, for a million tokens.")
        else:
            say("Prices are from kraq.toml, otherwise in US dollars from LiteLLM's list.")
        for problem in result.problems[:10]:
            note(short(problem, 240), label="left out: ")

    def _build(self) -> None:
        settings = self.settings()
        out = self.out or index_beside(self.corpus)
        build = partial(
            build_index,
            self.corpus,
            out,
            random_questions=self.random_questions,
            optimized=self.optimized or (),
        )

        try:
            report = run_build(partial(build, replace=self.replace), settings, self, json=self.json)
        except RemovedDocumentsError as error:
            if self.json or not sys.stdin.isatty():
                raise
            typer.echo(str(error), err=True)
            if not typer.confirm("Remove them?", err=True):
                raise typer.Exit(1) from None
            report = run_build(partial(build, replace=True), settings, self, json=self.json)

        if not self.json:
            say_what_to_try(out, report)


def say_what_to_try(index_dir: Path, report: BuildReport) -> None:
    """Say how a new index is asked, and its questions are listed if there are some."""
    list_them = [(command("questions", index_dir), "bold"), " or "] if report.counts.get("questions") else []
    say("Try: ", *list_them, (command("ask", index_dir, "YOUR QUESTION"), "bold"))


def index_beside(corpus: Path) -> Path:
    """Return the default of --out: in the current folder, or next to a corpus that contains it.

    Raises ConfigError if the index of another corpus is there.
    """
    source = corpus.resolve()
    name = f"{source.name if source.is_dir() else source.name.split('.')[0] or source.name}.kraq"
    out = source.parent / name if Path.cwd().is_relative_to(source) else Path(name)
    if (out / "manifest.json").is_file():
        with Index.open(out, unfinished=True) as there:
            origin = there.manifest.origin.get("path")
        if origin != str(source):
            raise ConfigError(
                f"{str(out)!r} is the index of {origin or 'another corpus'!r}. Name another folder with --out."
            )
    return out


def _cells(usage: Usage, cost: float | None) -> tuple[str, str, str, str]:
    money = "" if cost is None else "< 0.01" if 0 < cost < 0.005 else f"{cost:,.2f}"  # no price reads as nothing
    return f"{usage.calls:,}", compact(usage.prompt_tokens), compact(usage.completion_tokens), money
