"""Checks whether an index is whole, and mends it: `kraq check`."""

from typing import Annotated

import typer

from kraq_dspy.apps.cli.shared.bars import Bars
from kraq_dspy.apps.cli.shared.options import IndexDir, Json, Models
from kraq_dspy.apps.cli.shared.terminal import command, note, print_json, say, short


def check(
    index_dir: IndexDir,
    models: Models,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended; models may be asked.")] = False,
    json: Json = False,
) -> None:
    """Verify an index: every id leads somewhere, nothing is stale or missing. Ends with 1 where something is wrong."""
    from kraq_dspy.build.index.check import check_index, repair_index

    if repair:
        settings = models.settings_of(index_dir)
        with Bars(settings, quiet=json) as bars:
            report = repair_index(index_dir, settings=settings, progress=bars)
    else:
        if models.trust:
            models.settings_of(index_dir)
        report = check_index(index_dir)
    if json:
        state = {"whole": report.whole, "checked": report.checked, "problems": report.problems}
        print_json({**state, "answers": report.answers})
    elif report.whole:
        say((f"{index_dir} is whole", "green"), f": {sum(report.checked.values()):,} records and vectors checked.")
    else:
        for problem in report.problems:
            ids = f" ({', '.join(problem.ids)}{', ...' if problem.count > len(problem.ids) else ''})"
            listed = short(ids, 120) if problem.ids else ""
            say((f"{problem.count:,} ", "yellow"), short(problem.what, 200), listed)
        if any(problem.repair == "precompute" for problem in report.problems):
            note(command("precompute", index_dir), label="Embeddings: ")
        if any(problem.repair in ("resume", "flag") for problem in report.problems):
            note(command("check", index_dir, "--repair"), label="To mend it: ")
    waiting = {status: count for status, count in (report.answers or {}).items() if count and status != "approved"}
    if waiting and not json:
        shown = " and ".join(f"{count:,} {status}" for status, count in waiting.items())
        note(f"of the catalogue, {shown} entries wait: {command('catalogue', 'review', index_dir)}")
    if not report.whole:
        raise typer.Exit(1)
