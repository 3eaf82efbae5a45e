"""Opens the catalogue for its commands, names who changes it, and shows its entries."""

import getpass
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from kraq_dspy.apps.cli.shared.bars import Bars
from kraq_dspy.apps.cli.shared.opened import opened
from kraq_dspy.apps.cli.shared.options import Calls, Limits
from kraq_dspy.apps.cli.shared.terminal import command, note, output, printable, short, two_columns

if TYPE_CHECKING:
    from kraq_dspy.asset.store.catalogue import Catalogue
    from kraq_dspy.asset.store.index import Index
    from kraq_dspy.build.catalogue.ask_all import AskReport
    from kraq_dspy.records import AnswerEvidence, CatalogueEntry
    from kraq_dspy.workspace import Workspace

By = Annotated[str | None, typer.Option("--by", help="Who does this; your user name unless given.")]
Numbers = Annotated[list[int], typer.Argument(metavar="NUMBERS", help="Numbers of entries.")]
Pending = Annotated[bool, typer.Option("--pending", help="Not served before somebody approves it.")]
Approve = Annotated[bool, typer.Option("--approve", help="Serve the answers at once, without review.")]


class Status(StrEnum):
    pending = "pending"
    approved = "approved"
    stale = "stale"


PASSAGES = 5  # shown of an entry
STYLES = {"pending": "yellow", "approved": "green", "stale": "red"}


@contextmanager
def opened_catalogue(index_dir: Path, *, make: bool = True) -> "Iterator[tuple[Index, Catalogue]]":
    """The index's records and its catalogue to change; a new one where there is none, unless `make` is false."""
    from kraq_dspy.asset.store.catalogue import CATALOGUE, Catalogue
    from kraq_dspy.asset.store.index import Index
    from kraq_dspy.errors import CatalogueError

    with Index.open(index_dir) as index:
        path = index.path / CATALOGUE
        if not make and not path.is_file():
            begin = command("catalogue", "add", index_dir, "QUESTION", "ANSWER")
            raise CatalogueError(f"{str(index_dir)!r} has no catalogue yet. Begin one: {begin}")
        with Catalogue(path) as entries:
            yield index, entries


@contextmanager
def opened_with_models(
    index_dir: Path, calls: Calls, limits: Limits, *, write: bool = False, json: bool
) -> "Iterator[tuple[Workspace, Catalogue, Bars]]":
    """For what models answer: the index with its models, its catalogue, made where there is none, and bars."""
    from kraq_dspy.asset.store.catalogue import CATALOGUE, Catalogue

    with (
        opened(index_dir, calls, limits, write=write) as space,
        Catalogue(space.index.path / CATALOGUE) as entries,
        Bars(space.models.settings, quiet=json) as bars,
    ):
        yield space, entries, bars


@contextmanager
def reading(index_dir: Path) -> "Iterator[Catalogue | None]":
    """The catalogue to read; None where there is none."""
    from kraq_dspy.asset.store.index import Index
    from kraq_dspy.build.catalogue import sources

    with Index.open(index_dir) as index, sources.opened_catalogue(index.path) as entries:
        yield entries


def read_entries(index_dir: Path, status: Status | None) -> "list[CatalogueEntry]":
    with reading(index_dir) as entries:
        return entries.entries(status.value if status else None) if entries else []


def show_answering(title: str, report: "AskReport", rows: dict[str, Any], label: str) -> None:
    """What became of questions that a program was asked: `rows`, what all such commands count, and what failed."""
    counts = {
        "answered": report.answered,
        "not answered": report.unanswered,
        "failed": len(report.failures),
        "calls": report.calls,
    }
    output.print(two_columns(f"{title} in {report.seconds:.1f} s", rows | counts))
    for failure in report.failures[:10]:
        note(short(failure.reason, 240), label=label.format(failure.item_id))


def existing(entries: "Catalogue", numbers: list[int]) -> list[int]:
    """Each number once. Raises CatalogueError before anything is done, if one does not exist."""
    unique = list(dict.fromkeys(numbers))
    for number in unique:
        entries.get(number)
    return unique


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
    from kraq_dspy.programs.qa_search.failures import CLASSES, class_of

    rows = {
        "question": short(entry.question, 2000),
        "status": Text("removed", style="red") if removed else Text(entry.status, style=STYLES[entry.status]),
        "answer": printable(entry.answer) or "none yet",
        "sources": short(", ".join(source.document_id for source in entry.sources) or "none", 600),
        "origin": entry.origin + (f", asked {entry.asked} times" if entry.asked else ""),
    }
    if name := class_of(entry):
        rows["failed as"] = f"{name}: {CLASSES[name]}"
    if entry.given:
        rows["a program said"] = short(entry.given, 1000)
    console.print(two_columns(f"entry {entry.number}", rows))
    passages = entry.evidence if evidence is None else evidence
    for place, one in enumerate(passages[:PASSAGES], start=1):
        console.print(Text.assemble((f"  {place} ", "cyan"), short(one.document_id, 60), ": ", short(one.text, 400)))
    if len(passages) > PASSAGES:
        console.print(f"  and {len(passages) - PASSAGES} more passages")
