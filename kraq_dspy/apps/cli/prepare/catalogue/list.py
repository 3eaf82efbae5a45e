"""Lists the entries in a table: `kraq catalogue list`."""

from typing import Annotated

import typer
from rich.text import Text

from kraq_dspy.apps.cli.prepare.catalogue.shared import STYLES, Status, read_entries
from kraq_dspy.apps.cli.shared.options import IndexDir, Json
from kraq_dspy.apps.cli.shared.terminal import grid, output, print_json, say, short


def list_(
    index_dir: IndexDir,
    status: Annotated[Status | None, typer.Option("--status", help="Only these.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="The first N.")] = None,
    json: Json = False,
) -> None:
    """The entries, by number."""
    entries = read_entries(index_dir, status)
    shown = entries[:limit]
    if json:
        print_json(shown)
        return
    if not entries:
        say(f"No {status.value} entries." if status else "The catalogue is empty.")
        return
    rows = [
        (
            entry.number,
            Text(entry.status, style=STYLES[entry.status]),
            short(entry.question, 120),
            short(entry.answer, 120),
            len(entry.sources),
            entry.asked or "",
        )
        for entry in shown
    ]
    table = grid("", ">no.,status,question,answer,>sources,>asked", rows, box=None, padding=(0, 2, 0, 0), expand=True)
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
        column.ratio = 1 if column.header in ("question", "answer") else None
    output.print(table)
    if len(entries) > len(shown):
        say(f"and {len(entries) - len(shown):,} more")
