"""Changes and checks an index: `kraq add`, `remove`, `update`, `resume` and `check`."""

from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.options import Calls, Columns, IndexDir, Json, Limits, Models
from kraq_dspy.apps.cli.progress import Bars, run_build
from kraq_dspy.apps.cli.terminal import command, note, print_json, say, short


def add(
    index_dir: IndexDir,
    files: Annotated[list[Path], typer.Argument(help="Files or folders, of the kinds that `kraq index` reads.")],
    calls: Calls,
    limits: Limits,
    columns: Columns,
    json: Json = False,
) -> None:
    """Add documents; those with a known id (the file's name, or the id of its row) replace what was there."""
    from kraq_dspy.build.index.change import add_documents
    from kraq_dspy.build.index.opening import documents_of, read_to_the_first

    settings = columns.over(calls.settings_of(index_dir))
    corpora = [read_to_the_first(documents_of(file, settings, index_dir)) for file in files]
    run_build(partial(add_documents, index_dir, chain.from_iterable(corpora)), settings, limits, json=json)


def remove(
    index_dir: IndexDir,
    document_ids: Annotated[list[str], typer.Argument(metavar="IDS", help="Ids of documents.")],
    calls: Calls,
    limits: Limits,
    json: Json = False,
) -> None:
    """Remove documents, with all that was made from them alone."""
    from kraq_dspy.build.index.change import remove_documents

    settings = calls.settings_of(index_dir)
    run_build(partial(remove_documents, index_dir, document_ids), settings, limits, json=json)


def update(
    index_dir: IndexDir,
    corpus: Annotated[Path, typer.Argument(help="The corpus as it is now: a file or a folder.")],
    calls: Calls,
    limits: Limits,
    columns: Columns,
    recluster: Annotated[
        bool, typer.Option(help="Find the communities anew, at the price of about half their questions.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring the index up to date with a corpus: what is new comes in, what changed is done again, the rest goes."""
    from kraq_dspy.build.index.change import update_index

    settings = columns.over(calls.settings_of(index_dir))
    run_build(partial(update_index, index_dir, corpus, recluster=recluster), settings, limits, json=json)


def resume(index_dir: IndexDir, calls: Calls, limits: Limits, json: Json = False) -> None:
    """Go on with an interrupted build, and try again what failed."""
    from kraq_dspy.build.index.change import resume_index

    settings = calls.settings_of(index_dir)
    run_build(partial(resume_index, index_dir), settings, limits, json=json)


def check(
    index_dir: IndexDir,
    models: Models,
    repair: Annotated[bool, typer.Option(help="Mend what can be mended; models may be asked.")] = False,
    json: Json = False,
) -> None:
    """Verify an index: files and records are what was written, ids lead somewhere, nothing is stale or missing.

    Ends with 1 where something is wrong.
    """
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
        note(f"entries of the catalogue that wait: {shown}. {command('explore', index_dir, '--edit')}")
    if not report.whole:
        raise typer.Exit(1)
