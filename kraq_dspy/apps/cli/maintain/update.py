"""Lets an index follow its corpus, doing again only what changed: `kraq update`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.shared.options import Calls, Columns, IndexDir, Json, Limits
from kraq_dspy.apps.cli.shared.report import run_build


def update(
    index_dir: IndexDir,
    corpus: Annotated[Path, typer.Argument(help="The corpus as it is now: a file or a folder.")],
    calls: Calls,
    limits: Limits,
    columns: Columns,
    recluster: Annotated[
        bool, typer.Option("--recluster", help="Find the communities anew, at the price of about half their questions.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring the index up to date with a corpus: what is new comes in, what changed is done again, the rest goes."""
    from kraq_dspy.build.index.change import update_index

    settings = columns.over(calls.settings_of(index_dir))
    run_build(partial(update_index, index_dir, corpus, recluster=recluster), settings, limits, json=json)
