"""Lists the papers' tables and figures, what each needs, and whether it was run: `kraq eval list`."""

from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.shared.options import Json
from kraq_dspy.apps.cli.shared.terminal import grid, output, print_json, say
from kraq_dspy.errors import ConfigError


def list_(
    paper: Annotated[
        list[str] | None,
        typer.Option("--paper", help="Only of this one: kraq, qa-rag, k2rag, qa-search; may be repeated."),
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", metavar="DIR", help="Where reports are looked for.")] = Path("runs"),
    markdown: Annotated[
        bool, typer.Option("--markdown", help="As a page, with our figures beside the printed ones.")
    ] = False,
    json: Json = False,
) -> None:
    """List the papers' tables and figures: what each shows and needs, the command that runs it, and its report."""
    from kraq_dspy.eval.papers.listing import listed, page

    tables = listed(runs, paper or ())
    if not tables:
        raise ConfigError(f"No paper is called {', '.join(paper or ())}; there are: kraq, qa-rag, k2rag, qa-search.")
    if json:
        print_json([each.to_dict() for each in tables])
        return
    if markdown:
        print(page(tables), end="")
        return
    rows = [
        (each.table.command, f"{each.table.paper}, {each.table.number}", each.table.shows, each.table.needs,
         each.ours["report"] if each.ours else "")
        for each in tables
    ]  # fmt: skip
    output.print(grid("Tables and figures of the papers", "command,table,shows,needs,report", rows))
    say(f"{sum(each.ours is not None for each in tables)} of {len(tables)} have a report under {runs}.")
