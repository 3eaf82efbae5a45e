"""Adds documents to an index, doing only what is new: `kraq add`."""

from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.shared.options import Calls, Columns, IndexDir, Json, Limits
from kraq_dspy.apps.cli.shared.report import run_build


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
    corpora = [read_to_the_first(documents_of(file, settings)) for file in files]
    run_build(partial(add_documents, index_dir, chain.from_iterable(corpora)), settings, limits, json=json)
