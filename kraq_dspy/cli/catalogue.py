"""`kraq catalogue`: the prepared answers of an index, looked at and changed."""

import getpass
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kraq_dspy.cli import options
from kraq_dspy.cli.terminal import Bars, errors, output, print_json, printable, short, two_columns

if TYPE_CHECKING:
    from kraq_dspy.catalogue.import_answers import ImportReport
    from kraq_dspy.catalogue.store import Catalogue
    from kraq_dspy.records import AnswerEvidence, CatalogueEntry
    from kraq_dspy.stores.index import Index

catalogue = typer.Typer(help="Answers prepared in advance, which `kraq ask -p qa-search` gives.", no_args_is_help=True)

By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who does this; your user name unless given.")]
Numbers = Annotated[list[int], typer.Argument(metavar="NUMBERS", help="Numbers of entries.")]
Pending = Annotated[bool, typer.Option("--pending", help="Not served before somebody approves it.")]


class Status(StrEnum):
    pending = "pending"
    approved = "approved"
    stale = "stale"


class Form(StrEnum):
    csv = "csv"
    jsonl = "jsonl"


PASSAGES = 5  # shown of an entry
STYLES = {"pending": "yellow", "approved": "green", "stale": "red"}


@catalogue.command("add")
def add(
    index_dir: options.IndexDir,
    question: Annotated[str, typer.Argument(help="As people ask it.")],
    answer: Annotated[str, typer.Argument(help="What they are told.")],
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="DOCUMENT_ID", help="What the answer rests on; may be repeated."),
    ] = None,
    pending: Pending = False,
    replace: Annotated[bool, typer.Option("--replace", help="Also where there is another answer already.")] = False,
    by: By = None,
    json: options.Json = False,
) -> None:
    """Add a question and its answer, or answer a question that is there. When a source changes, it goes to review."""
    from kraq_dspy.catalogue.sources import sources_of
    from kraq_dspy.catalogue.store import NewEntry
    from kraq_dspy.stores.index import Index

    with Index.open(index_dir) as index:  # before there is a catalogue, which a wrong id must not make
        sources = sources_of(index, source or ())
    new = NewEntry(question, _said(answer), "pending" if pending else "approved", sources)
    with opened(index_dir) as (_, entries):
        entry = entries.add(new, by=by or user(), replace=replace)
    if json:
        print_json(entry)
    else:
        output.print(Text(f"Entry {entry.number}, {entry.status}: ") + short(entry.question, 200))


@catalogue.command("list")
def list_entries(
    index_dir: options.IndexDir,
    status: Annotated[Status | None, typer.Option("--status", help="Only these.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="The first N.")] = None,
    json: options.Json = False,
) -> None:
    """The entries, by number."""
    found = _read(index_dir, status)
    shown = found[:limit]
    if json:
        print_json(shown)
        return
    if not found:
        output.print(f"No {status.value} entries." if status else "The catalogue is empty.")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), expand=True)
    for heading in ("number", "status", "question", "answer", "sources", "asked"):
        table.add_column(
            heading,
            justify="right" if heading in ("number", "sources", "asked") else "left",
            ratio=1 if heading in ("question", "answer") else None,
            no_wrap=True,
            overflow="ellipsis",
        )
    for entry in shown:
        table.add_row(
            str(entry.number),
            Text(entry.status, style=STYLES[entry.status]),
            short(entry.question, 120),
            short(entry.answer, 120),
            str(len(entry.sources)),
            str(entry.asked or ""),
        )
    output.print(table)
    if len(found) > len(shown):
        output.print(f"and {len(found) - len(shown):,} more")


@catalogue.command("show")
def show(
    index_dir: options.IndexDir,
    number: Annotated[int, typer.Argument(help="Of the entry; also of one that was removed.")],
    json: options.Json = False,
) -> None:
    """One entry with all its versions, its sources, and what a program said and saw where it failed."""
    from kraq_dspy.errors import CatalogueError

    with reading(index_dir) as entries:
        history = entries.history(number) if entries else []
    if not history:
        raise CatalogueError(f"The catalogue has no entry {number}. See them all: kraq catalogue list {index_dir}")
    last = history[-1]
    if json:
        print_json({"entry": last.entry, "removed": last.action == "removed", "history": history})
        return
    show_entry(last.entry, removed=last.action == "removed")
    table = Table(title="versions", title_justify="left")
    for heading in ("version", "what", "when", "by", "status", "answer"):
        table.add_column(heading, justify="right" if heading == "version" else "left")
    for change in history:
        entry = change.entry
        cells = (Text(entry.changed_at), short(entry.changed_by, 40), Text(entry.status), short(entry.answer, 100))
        table.add_row(str(entry.version), change.action, *cells)
    output.print(table)


@catalogue.command("approve")
def approve(
    index_dir: options.IndexDir,
    numbers: Numbers,
    by: By = None,
    json: options.Json = False,
) -> None:
    """Serve these entries from now on, as their answers and their documents are now."""
    from kraq_dspy.catalogue.review import approve as approved

    with opened(index_dir, make=False) as (index, entries):
        done = [approved(index, entries, number, by=by or user()) for number in _checked(entries, numbers)]
    if json:
        print_json(done)
    else:
        output.print(f"Approved: {', '.join(str(entry.number) for entry in done)}")


@catalogue.command("remove")
def remove(index_dir: options.IndexDir, numbers: Numbers, by: By = None, json: options.Json = False) -> None:
    """Take entries out. Their numbers are not given again, and `show` still knows them."""
    with opened(index_dir, make=False) as (_, entries):
        for number in _checked(entries, numbers):
            entries.remove(number, by=by or user())
        left = entries.counts()
    if json:
        print_json({"removed": list(dict.fromkeys(numbers)), "left": left})
    else:
        output.print(f"Removed {len(set(numbers))}; {sum(left.values()):,} entries are left.")


@catalogue.command("import")
def import_file(
    index_dir: options.IndexDir,
    file: Annotated[
        Path,
        typer.Argument(
            help="csv, tsv, jsonl or json with the columns question, answer, and if need be sources, status."
        ),
    ],
    pending: Pending = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Answers of the file go before those that are there.")
    ] = False,
    by: By = None,
    json: options.Json = False,
) -> None:
    """Add the entries of a file. Rows that are none, and answers that contradict the catalogue's, are shown and left;
    then it ends with 1."""
    from kraq_dspy.catalogue.import_answers import import_answers

    with opened(index_dir) as (index, entries), Bars(quiet=json) as bars:
        report = import_answers(index, entries, file, by=by or user(), replace=replace, pending=pending, progress=bars)
    if json:
        print_json(report)
    else:
        _show_import(report)
    if not report.complete:
        raise typer.Exit(1)


@catalogue.command("export")
def export_file(
    index_dir: options.IndexDir,
    file: Annotated[Path, typer.Argument(metavar="FILE|-", help="Where to: .csv or .jsonl; - is standard output.")],
    status: Annotated[Status | None, typer.Option("--status", help="Only these.")] = None,
    form: Annotated[Form | None, typer.Option("--format", "-f", help="Unless the file's ending says it.")] = None,
    json: options.Json = False,
) -> None:
    """Write the entries to a file that `import` reads: to edit them elsewhere, or for another index."""
    from kraq_dspy.catalogue.files import entries_text
    from kraq_dspy.errors import CatalogueError, ConfigError

    ending = file.suffix.lower().removeprefix(".")
    if form is None and ending not in ("csv", "jsonl", "ndjson") and str(file) != "-":
        raise ConfigError(f"{str(file)!r}: name a file that ends in .csv or .jsonl, or give --format.")
    if str(file) == "-" and json:
        raise ConfigError("With --json, write to a file: standard output would hold both.")
    chosen = form.value if form else "csv" if ending == "csv" else "jsonl"
    found = _read(index_dir, status)
    text = entries_text(found, chosen)
    if str(file) == "-":
        sys.stdout.write(text)
        return
    try:
        file.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise CatalogueError(f"{str(file)!r} cannot be written: {error.strerror}.") from error
    if json:
        print_json({"file": str(file), "entries": len(found)})
    else:
        output.print(f"{len(found):,} entries in {escape(str(file))}", highlight=False)


@contextmanager
def opened(index_dir: Path, *, make: bool = True) -> "Iterator[tuple[Index, Catalogue]]":
    """The index's records and its catalogue to change; a new one where there is none, unless `make` is false."""
    from kraq_dspy.catalogue.store import CATALOGUE, Catalogue
    from kraq_dspy.errors import CatalogueError
    from kraq_dspy.stores.index import Index

    with Index.open(index_dir) as index:
        path = index.path / CATALOGUE
        if not make and not path.is_file():
            raise CatalogueError(
                f"{str(index_dir)!r} has no catalogue yet. Begin one: kraq catalogue add {index_dir} ..."
            )
        entries = Catalogue(path)
        try:
            yield index, entries
        finally:
            entries.close()


@contextmanager
def reading(index_dir: Path) -> "Iterator[Catalogue | None]":
    """The catalogue to read; None where there is none."""
    from kraq_dspy.catalogue.sources import open_catalogue
    from kraq_dspy.stores.index import Index

    with Index.open(index_dir) as index:
        entries = open_catalogue(index.path)
        try:
            yield entries
        finally:
            if entries is not None:
                entries.close()


def user() -> str:
    """The user's name, for the history of an entry."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container's user may have none
        return "somebody"


def show_entry(
    entry: "CatalogueEntry",
    *,
    removed: bool = False,
    evidence: "Sequence[AnswerEvidence] | None" = None,
    console: Console = output,
) -> None:
    """Everything of an entry but its history; its own evidence unless other is given."""
    state = Text("removed", style="red") if removed else Text(entry.status, style=STYLES[entry.status])
    rows = {
        "question": short(entry.question, 2000),
        "status": state,
        "answer": Text(printable(entry.answer) or "none yet"),
        "sources": short(", ".join(source.document_id for source in entry.sources) or "none", 600),
        "origin": entry.origin + (f", asked {entry.asked} times" if entry.asked else ""),
    }
    if entry.given:
        rows["a program said"] = short(entry.given, 1000)
    console.print(two_columns(f"entry {entry.number}", rows))
    seen = entry.evidence if evidence is None else evidence
    for place, one in enumerate(seen[:PASSAGES], start=1):
        console.print(Text.assemble((f"  {place} ", "cyan"), short(one.document_id, 60), ": ", short(one.text, 400)))
    if len(seen) > PASSAGES:
        console.print(f"  and {len(seen) - PASSAGES} more passages")


def _read(index_dir: Path, status: Status | None) -> "list[CatalogueEntry]":
    with reading(index_dir) as entries:
        return entries.entries(status.value if status else None) if entries else []


def _checked(entries: "Catalogue", numbers: list[int]) -> list[int]:
    """Each number once. Raises CatalogueError before anything is done, if one does not exist."""
    wanted = list(dict.fromkeys(numbers))
    for number in wanted:
        entries.get(number)
    return wanted


def _said(answer: str) -> str:
    from kraq_dspy.errors import CatalogueError

    if not answer.strip():
        raise CatalogueError("The answer is empty. Say what people are to be told.")
    return answer


def _show_import(report: "ImportReport") -> None:
    done = report.entries
    counts = {
        "added": len(done.added),
        "answered": len(done.answered),
        "changed": len(done.replaced),
        "as they were": len(done.unchanged),
        "refused rows": len(report.refused),
        "conflicts": len(done.conflicts),
    }
    output.print(two_columns("Imported", {name: f"{count:,}" for name, count in counts.items()}))
    if done.conflicts:
        table = Table(title="another answer is there; --replace takes the file's", title_justify="left")
        table.add_column("entry", justify="right")
        for heading in ("question", "kept", "left"):
            table.add_column(heading)
        for conflict in done.conflicts[:50]:
            cells = (short(text, 120) for text in (conflict.question, conflict.kept, conflict.refused))
            table.add_row(str(conflict.number), *cells)
        output.print(table)
    for reason in report.refused[:20]:
        errors.print(Text("left out: ", style="yellow") + short(reason, 300))
    if len(report.refused) > 20:
        errors.print(f"and {len(report.refused) - 20} more")
    if report.stale:
        errors.print(f"[yellow]{len(report.stale)} entries are stale[/]: their documents are not those of the file.")
