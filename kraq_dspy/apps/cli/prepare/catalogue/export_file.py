"""Writes the entries to a file that `import` reads: `kraq catalogue export`."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.prepare.catalogue.shared import Status, read_entries
from kraq_dspy.apps.cli.shared.options import IndexDir, Json
from kraq_dspy.apps.cli.shared.terminal import print_json, say
from kraq_dspy.errors import CatalogueError, ConfigError


class Form(StrEnum):
    csv = "csv"
    jsonl = "jsonl"


def export(
    index_dir: IndexDir,
    file: Annotated[Path, typer.Argument(metavar="FILE|-", help="Where to: .csv or .jsonl; - is standard output.")],
    status: Annotated[Status | None, typer.Option("--status", help="Only these.")] = None,
    form: Annotated[Form | None, typer.Option("--format", "-f", help="Unless the file's ending says it.")] = None,
    json: Json = False,
) -> None:
    """Write the entries to a file that `import` reads: to edit them elsewhere, or for another index."""
    from kraq_dspy.build.catalogue.files import entries_text

    ending = file.suffix.lower().removeprefix(".")
    if form is None and ending not in ("csv", "jsonl", "ndjson") and str(file) != "-":
        raise ConfigError(f"{str(file)!r}: name a file that ends in .csv or .jsonl, or give --format.")
    if str(file) == "-" and json:
        raise ConfigError("With --json, write to a file: standard output would hold both.")
    entries = read_entries(index_dir, status)
    text = entries_text(entries, form.value if form else "csv" if ending == "csv" else "jsonl")
    if str(file) == "-":
        sys.stdout.write(text)
        return
    try:
        file.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise CatalogueError(f"{str(file)!r} cannot be written: {error.strerror}.") from error
    if json:
        print_json({"file": str(file), "entries": len(entries)})
    else:
        say(f"{len(entries):,} entries in {file}")
