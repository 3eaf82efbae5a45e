"""`kraq check`: is an index whole, and what mends it."""

from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text

from kraq_dspy.cli import options
from kraq_dspy.cli.terminal import Bars, errors, output, print_json, short


def check(
    index_dir: options.IndexDir,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended; models may be asked.")] = False,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    json: options.Json = False,
) -> None:
    """Verify an index: every id leads somewhere, nothing is stale or missing. Ends with 1 where something is wrong."""
    from kraq_dspy.indexing.check import check_index, repair_index
    from kraq_dspy.stores.index import Index

    if repair:
        with Index.open(index_dir) as index:
            made_with = index.manifest.settings
        settings = options.settings_from(config, base=made_with, lm=lm, api_base=api_base)
        with Bars(quiet=json) as bars:
            report = repair_index(index_dir, settings=settings, progress=bars)
    else:
        report = check_index(index_dir)
    if json:
        found = {"whole": report.whole, "checked": report.checked, "problems": report.problems}
        print_json({**found, "answers": report.answers})
    elif report.whole:
        records = sum(report.checked.values())
        output.print(f"[green]{escape(str(index_dir))} is whole[/]: {records:,} records and their vectors checked.")
    else:
        for problem in report.problems:
            ids = f" ({', '.join(problem.ids)}{', ...' if problem.count > len(problem.ids) else ''})"
            line = Text(f"{problem.count:,} ", style="yellow") + short(problem.what, 200)
            output.print(line + short(ids, 120) if problem.ids else line)
        if any(problem.repair == "precompute" for problem in report.problems):
            errors.print(f"Embeddings: kraq precompute {escape(str(index_dir))}")
        if any(problem.repair in ("resume", "flag") for problem in report.problems):
            errors.print(f"To mend it: kraq check {escape(str(index_dir))} --repair")
    waiting = {status: count for status, count in (report.answers or {}).items() if count and status != "approved"}
    if waiting and not json:
        shown = " and ".join(f"{count:,} {status}" for status, count in waiting.items())
        errors.print(f"Of the catalogue, {shown} entries wait: kraq catalogue review {escape(str(index_dir))}")
    if not report.whole:
        raise typer.Exit(1)
