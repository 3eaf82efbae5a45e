"""Reads the entries of a file: `kraq catalogue import`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kraq_dspy.apps.cli.prepare.catalogue.shared import By, Pending, opened_catalogue, user
from kraq_dspy.apps.cli.shared.bars import Bars
from kraq_dspy.apps.cli.shared.options import IndexDir, Json
from kraq_dspy.apps.cli.shared.terminal import counted, grid, note, output, print_json, short, two_columns

if TYPE_CHECKING:
    from kraq_dspy.build.catalogue.import_answers import ImportReport


def import_(
    index_dir: IndexDir,
    file: Annotated[
        Path,
        typer.Argument(
            help="csv, tsv, jsonl or json with the columns question, answer, and if need be sources, status."
        ),
    ],
    pending: Pending = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Answers of the file go before those that are there.")
    ] = False,
    by: By = None,
    json: Json = False,
) -> None:
    """Add the entries of a file. Rows that are none, and answers that contradict the catalogue's, are shown and left;
    then it ends with 1."""
    from kraq_dspy.build.catalogue.import_answers import import_answers

    with opened_catalogue(index_dir) as (index, entries), Bars(quiet=json) as bars:
        report = import_answers(index, entries, file, by=by or user(), replace=replace, pending=pending, progress=bars)
    if json:
        print_json(report)
    else:
        _show(report)
    if not report.complete:
        raise typer.Exit(1)


def _show(report: "ImportReport") -> None:
    done = report.entries
    counts = {
        "added": done.added,
        "answered": done.answered,
        "changed": done.replaced,
        "as they were": done.unchanged,
        "refused rows": report.refused,
        "conflicts": done.conflicts,
    }
    output.print(two_columns("Imported", {name: len(listed) for name, listed in counts.items()}))
    if done.conflicts:
        rows = [
            (conflict.number, *(short(text, 120) for text in (conflict.question, conflict.kept, conflict.refused)))
            for conflict in done.conflicts[:50]
        ]
        output.print(grid("another answer is there; --replace takes the file's", ">entry,question,kept,left", rows))
    for reason in report.refused[:20]:
        note(short(reason, 300), label="left out: ")
    if len(report.refused) > 20:
        note(f"and {len(report.refused) - 20} more", label="")
    if report.stale:
        entries = counted(len(report.stale), "entry").replace("entrys", "entries")
        note(" went stale: their documents are not those of the file.", label=entries)
