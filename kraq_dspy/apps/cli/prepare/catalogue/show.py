"""Shows one entry with its history: `kraq catalogue show`."""

from typing import Annotated

import typer

from kraq_dspy.apps.cli.prepare.catalogue.shared import reading, show_entry
from kraq_dspy.apps.cli.shared.options import IndexDir, Json
from kraq_dspy.apps.cli.shared.terminal import command, grid, output, print_json, short
from kraq_dspy.errors import CatalogueError


def show(
    index_dir: IndexDir,
    number: Annotated[int, typer.Argument(help="Of the entry; also of one that was removed.")],
    json: Json = False,
) -> None:
    """One entry with all its versions, its sources, and what a program said and saw where it failed."""
    with reading(index_dir) as entries:
        history = entries.history(number) if entries else []
    if not history:
        see = command("catalogue", "list", index_dir)
        raise CatalogueError(f"The catalogue has no entry {number}. See them all: {see}")
    last = history[-1]
    if json:
        print_json({"entry": last.entry, "removed": last.action == "removed", "history": history})
        return
    show_entry(last.entry, removed=last.action == "removed")
    rows = [
        (
            change.entry.version,
            change.action,
            change.entry.changed_at,
            short(change.entry.changed_by, 40),
            change.entry.status,
            short(change.entry.answer, 100),
        )
        for change in history
    ]
    output.print(grid("versions", ">version,what,when,by,status,answer", rows))
