"""`kraq index`: from a corpus to representative questions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kraq_dspy.cli import options
from kraq_dspy.cli.terminal import Bars, compact, errors, output, print_json, short

if TYPE_CHECKING:
    from kraq_dspy.indexing.build import BuildReport


def index(
    corpus: Annotated[Path, typer.Argument(help="A file or folder of txt, md, html, pdf, jsonl, csv or parquet.")],
    out: options.Out,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    encoder: options.Encoder = None,
    encoder_api_base: options.EncoderBase = None,
    concurrency: options.Concurrency = None,
    runner: options.Runner = None,
    random_questions: Annotated[
        bool, typer.Option("--random-questions", help="Also make the papers' baseline: questions from random chunks.")
    ] = False,
    program_state: options.ProgramStates = None,
    redact: options.Redact = False,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    json: options.Json = False,
) -> None:
    """Index CORPUS: graph, communities, summaries, and a question for each community.

    Run it again to go on after an interruption, to retry what failed, or to bring the index up to date with the corpus.
    """
    from kraq_dspy.indexing.build import build_index

    settings = options.settings_from(
        config,
        lm=lm,
        api_base=api_base,
        encoder=encoder,
        encoder_api_base=encoder_api_base,
        concurrency=concurrency,
        runner=runner,
        redact=redact,
    )
    with Bars(quiet=json) as bars:
        report = build_index(
            corpus,
            out,
            settings=settings,
            progress=bars,
            random_questions=random_questions,
            program_states=program_state or (),
            limits=options.limits_from(max_calls, max_tokens, max_cost),
        )
    show_report(report, json=json)


def show_report(report: "BuildReport", *, json: bool) -> None:
    """The summary at the end of a build, and what failed in it."""
    if json:
        print_json(report)
        return
    table = Table(title=f"{report.path} in {report.seconds:.1f} s", title_justify="left")
    table.add_column("made")
    table.add_column("count", justify="right")
    for name, count in report.counts.items():
        table.add_row(name, f"{count:,}")
    output.print(table)
    if report.usage:
        spent = Table(title="asked of the models in this run", title_justify="left")
        for heading in ("stage", "calls", "tokens in", "tokens out"):
            spent.add_column(heading, justify="left" if heading == "stage" else "right")
        for stage, usage in report.usage.items():
            cells = (f"{usage.calls:,}", compact(usage.prompt_tokens), compact(usage.completion_tokens))
            spent.add_row(stage, *cells)
        output.print(spent)
    output.print(Text(f"models: {models_in_words(report.models)}"))
    for problem in report.problems:
        errors.print(Text("note: ", style="yellow") + short(problem, 300))
    if report.stale_answers:
        errors.print(
            f"[yellow]{report.stale_answers} answers of the catalogue are stale[/], since their documents changed, and "
            f"not given until somebody looks: kraq catalogue review {escape(str(report.path))}"
        )
    show_failures(report.failures)


def models_in_words(models: dict[str, str]) -> str:
    """The default model, and the roles that have another one."""
    default = models.get("default", "none yet")
    others = [f"{role} {name}" for role, name in models.items() if name != default]
    return ", ".join([default, *others])


def show_failures(failures: "tuple[object, ...]", limit: int = 10) -> None:
    from kraq_dspy.records import Failure

    listed = [failure for failure in failures if isinstance(failure, Failure)]
    if not listed:
        return
    errors.print(f"[yellow]{len(listed)} items could not be done[/] (all: kraq status --json); the rest is complete.")
    for failure in listed[:limit]:
        errors.print(Text(f"  {failure.stage}: ") + short(f"{failure.item_id}: {failure.reason}", 240))
    if len(listed) > limit:
        errors.print(f"  and {len(listed) - limit} more")
