"""Lists the papers' tables and figures, what each needs, and whether it was run: `kraq eval list`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from kraq_dspy.apps.cli.options import Json
from kraq_dspy.apps.cli.terminal import output, print_json, say
from kraq_dspy.errors import ConfigError


def list_(
    paper: Annotated[
        list[str] | None, typer.Option(help="Only of this one: kraq, qa-rag, k2rag, qa-search; may be repeated.")
    ] = None,
    runs: Annotated[Path, typer.Option(metavar="DIR", help="Where reports are looked for.")] = Path("runs"),
    markdown: Annotated[bool, typer.Option(help="As a page, with our figures beside the printed ones.")] = False,
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
    for each in tables:
        table = each.table
        report = (f"  {each.ours['report']}", "green") if each.ours else ""
        say((f"{table.command}  ", "bold"), f"{table.paper}, {table.number}", report)
        for line in filter(None, (table.shows, table.needs and f"needs {table.needs}")):
            output.print(Padding(Text(line, style="dim"), (0, 0, 0, 4)), width=min(output.width, 80))
    say(f"{sum(each.ours is not None for each in tables)} of {len(tables)} have a report under {runs}.")
