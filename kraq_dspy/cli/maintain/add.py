"""Adds documents to an index, doing only what is new: `kraq add`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kraq_dspy.cli.shared.bars import Bars
from kraq_dspy.cli.shared.options import Calls, Columns, IndexDir, Json, Limits
from kraq_dspy.cli.shared.report import show_report

if TYPE_CHECKING:
    from kraq_dspy.config import Settings
    from kraq_dspy.records import Document, Failure


def add(
    index_dir: IndexDir,
    files: Annotated[list[Path], typer.Argument(help="Files or folders, of the kinds that `kraq index` reads.")],
    calls: Calls,
    limits: Limits,
    columns: Columns,
    json: Json = False,
) -> None:
    """Add documents; those with a known id (the file's name, or the id of its row) replace what was there."""
    from kraq_dspy.indexing.change import add_documents

    settings = columns.over(calls.settings_of(index_dir))
    with Bars(settings, quiet=json) as bars:
        documents = _loaded(files, settings)
        report = add_documents(index_dir, documents, settings=settings, limits=limits.of(settings), progress=bars)
    show_report(report, json=json)


def _loaded(files: list[Path], settings: "Settings") -> "Iterator[Document | Failure]":
    from kraq_dspy.indexing.opening import documents_of

    for file in files:
        yield from documents_of(file, settings)
