"""Takes documents out of an index, with all that was made from them alone: `kraq remove`."""

from functools import partial
from typing import Annotated

import typer

from kraq_dspy.apps.cli.shared.options import Calls, IndexDir, Json, Limits
from kraq_dspy.apps.cli.shared.report import run_build


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
