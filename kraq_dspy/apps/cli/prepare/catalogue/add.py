"""Adds an answer that a person gives: `kraq catalogue add`."""

from typing import Annotated

import typer

from kraq_dspy.apps.cli.prepare.catalogue.shared import By, Pending, opened_catalogue, user
from kraq_dspy.apps.cli.shared.options import IndexDir, Json
from kraq_dspy.apps.cli.shared.terminal import print_json, say, short
from kraq_dspy.errors import CatalogueError


def add(
    index_dir: IndexDir,
    question: Annotated[str, typer.Argument(help="As people ask it.")],
    answer: Annotated[str, typer.Argument(help="What they are told.")],
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="DOCUMENT_ID", help="What the answer rests on; may be repeated."),
    ] = None,
    pending: Pending = False,
    replace: Annotated[bool, typer.Option("--replace", help="Also where there is another answer already.")] = False,
    by: By = None,
    json: Json = False,
) -> None:
    """Add a question and its answer, or answer a question that is there. When a source changes, it goes to review."""
    from kraq_dspy.asset.store.catalogue import NewEntry
    from kraq_dspy.asset.store.index import Index
    from kraq_dspy.build.catalogue.sources import sources_of

    with Index.open(index_dir) as index:  # before there is a catalogue, which a wrong id must not make
        sources = sources_of(index, source or ())
    if not answer.strip():
        raise CatalogueError("The answer is empty. Write what people are to be told.")
    new = NewEntry(question, answer, "pending" if pending else "approved", sources)
    with opened_catalogue(index_dir) as (_, entries):
        entry = entries.add(new, by=by or user(), replace=replace)
    if json:
        print_json(entry)
    else:
        say(f"Entry {entry.number}, {entry.status}: ", short(entry.question, 200))
