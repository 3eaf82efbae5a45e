"""Lists the representative questions of an index, without loading any model: `kraq questions`."""

from typing import Annotated

import typer
from rich.table import Table

from kraq_dspy.apps.cli.shared.options import IndexDir, Json, QuestionSource, Source
from kraq_dspy.apps.cli.shared.terminal import output, print_json, say, short
from kraq_dspy.errors import ConfigError


def questions(
    index_dir: IndexDir,
    level: Annotated[int | None, typer.Option("--level", min=0, help="Only this level; 0 is the broadest.")] = None,
    source: Source = QuestionSource.kraq,
    duplicates: Annotated[bool, typer.Option("--duplicates", help="Also those marked as duplicates.")] = False,
    personal: Annotated[
        bool, typer.Option("--personal", help="Only those with e-mail addresses, phone or card numbers.")
    ] = False,
    json: Json = False,
) -> None:
    """The representative questions, broadest first."""
    from kraq_dspy.asset.corpus.redact import find_personal
    from kraq_dspy.asset.store.index import Index

    with Index.open(index_dir) as index:
        listed = list(index.questions(level, source=source, duplicates=duplicates))
        deepest = max((question.level for question in index.questions(source=source)), default=None)
    if level is not None and deepest is not None and level > deepest:
        raise ConfigError(f"--level is {level}; the deepest level with questions here is {deepest}.")
    if personal:
        listed = [question for question in listed if find_personal(question.text)]
    if json:
        print_json(listed)
        return
    if not listed:
        say("No questions here." if level is None else f"No questions on level {level}.")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("level", "chunks", "files", "question"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for question in listed:
        table.add_row(
            str(question.level),
            str(len(question.chunk_ids)),
            str(len(question.document_ids)),
            short(question.text, 200),
            style="dim" if question.duplicate_of else None,
        )
    output.print(table)
