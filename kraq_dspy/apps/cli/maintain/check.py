"""Checks whether an index is whole, and mends it: `kraq check`."""

from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.shared.bars import Bars
from kraq_dspy.apps.cli.shared.options import IndexDir, Json, Models
from kraq_dspy.apps.cli.shared.terminal import command, note, print_json, say, short


def check(
    index_dir: IndexDir,
    models: Models,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended; models may be asked.")] = False,
    forgotten: Annotated[
        Path | None,
        typer.Option("--forgotten", metavar="FILE", help="Look for its lines in every byte instead: what was removed."),
    ] = None,
    json: Json = False,
) -> None:
    """Verify an index: files and records are what was written, ids lead somewhere, nothing is stale or missing.

    Ends with 1 where something is wrong.
    """
    from kraq_dspy.build.index.check import check_index, repair_index

    if forgotten is not None:
        look_for(forgotten, index_dir, json)
        return
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


def look_for(file: Path, index_dir: Path, json: bool) -> None:
    """Says which of the file's lines are still in the index, where, and until when. Ends with 1 where some are."""
    from kraq_dspy.build.index.forgotten import find_traces
    from kraq_dspy.errors import IndexStateError

    try:
        texts = [line.strip() for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise IndexStateError(f"Cannot read {str(file)!r}: {error}. It is to have one text a line.") from error
    traces = find_traces(index_dir, texts)
    if json:
        print_json({"texts": len(texts), "traces": traces})
    elif not traces:
        say((f"None of {len(texts):,} texts", "green"), f" is in any byte of {index_dir}.")
    for trace in () if json else traces:
        where = f"{trace.file}{f', {trace.where}' if trace.where else ''}"
        say((f"{len(trace.texts):,} ", "yellow"), f"in {where}, {trace.until}")
    if traces:
        raise typer.Exit(1)
