"""Keeps prepared answers by hand, from files, programs and documents: `kraq catalogue`."""

import getpass
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kraq_dspy.apps.cli.options import Calls, IndexDir, Json, Limits, opened
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import command, counted, grid, note, output, print_json, say, short, show_counts
from kraq_dspy.errors import CatalogueError, ConfigError

if TYPE_CHECKING:
    from kraq_dspy.asset.store.catalogue import Catalogue
    from kraq_dspy.asset.store.index import Index
    from kraq_dspy.records import CatalogueEntry
    from kraq_dspy.workspace import Workspace


Numbers = Annotated[list[int], typer.Argument(metavar="NUMBERS", help="Numbers of entries.")]
Pending = Annotated[bool, typer.Option("--pending", help="Not served before somebody approves it.")]
Approve = Annotated[bool, typer.Option("--approve", help="Serve the answers at once, without review.")]
Status = Literal["pending", "approved", "stale"]
Critics = Literal["ratings", "roundtrip"]


def add(
    index_dir: IndexDir,
    question: Annotated[str, typer.Argument(help="As people ask it.")],
    answer: Annotated[str, typer.Argument(help="What they are told.")],
    source: Annotated[
        list[str] | None, typer.Option(metavar="DOCUMENT_ID", help="What the answer rests on; may be repeated.")
    ] = None,
    pending: Pending = False,
    replace: Annotated[bool, typer.Option(help="Also where there is another answer already.")] = False,
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
        entry = entries.add(new, by=user(), replace=replace)
    if json:
        print_json(entry)
    else:
        say(f"Entry {entry.number}, {entry.status}: ", short(entry.question, 200))


def list_(
    index_dir: IndexDir,
    status: Annotated[Status | None, typer.Option(help="Only these.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The first N.")] = None,
    json: Json = False,
) -> None:
    """The entries, by number, and in which ways programs failed at their questions."""
    entries = read_entries(index_dir, status)
    shown = entries[:limit]
    if json:
        print_json(shown)
        return
    if not entries:
        say(f"No {status} entries." if status else "The catalogue is empty.")
        return
    rows = [
        (entry.number, entry.status, short(entry.question, 120), short(entry.answer, 120), len(entry.sources))
        for entry in shown
    ]
    numbers = ("no.", "sources")
    output.print(grid("", ("no.", "status", "question", "answer", "sources"), rows, right=numbers, box=None))
    if len(entries) > len(shown):
        say(f"and {len(entries) - len(shown):,} more")
    if failed := Counter(entry.failure for entry in entries if entry.failure):
        say("programs failed: ", ", ".join(f"{count:,} {name}" for name, count in failed.most_common()))


def approve(index_dir: IndexDir, numbers: Numbers, json: Json = False) -> None:
    """Serve these entries from now on, as their answers and their documents are now."""
    from kraq_dspy.build.catalogue.review import approve as approve_entry

    with opened_catalogue(index_dir, make=False) as (index, entries):
        done = [approve_entry(index, entries, number, by=user()) for number in existing(entries, numbers)]
    if json:
        print_json(done)
    else:
        say(f"Approved: {', '.join(str(entry.number) for entry in done)}")


def remove(index_dir: IndexDir, numbers: Numbers, json: Json = False) -> None:
    """Take entries out. Their numbers are not given again, and `show` still knows them."""
    with opened_catalogue(index_dir, make=False) as (_, entries):
        removed = existing(entries, numbers)
        for number in removed:
            entries.remove(number, by=user())
        left = entries.counts()
    if json:
        print_json({"removed": removed, "left": left})
    else:
        say(f"Removed {len(removed)}; left: {sum(left.values()):,}.")


def import_(
    index_dir: IndexDir,
    file: Annotated[
        Path,
        typer.Argument(
            help="csv, tsv, jsonl or json with the columns question, answer, and if need be sources, status."
        ),
    ],
    pending: Pending = False,
    replace: Annotated[bool, typer.Option(help="Answers of the file go before those that are there.")] = False,
    json: Json = False,
) -> None:
    """Add the entries of a file. Rows that are none, and answers that contradict the catalogue's, are shown and left;
    then it ends with 1."""
    from kraq_dspy.build.catalogue.files import import_answers

    with opened_catalogue(index_dir) as (index, entries):
        report = import_answers(index, entries, file, by=user(), replace=replace, pending=pending)
    if json:
        print_json(report)
    else:
        show_counts("Imported", report.entries, refused=len(report.refused))
        if report.entries.conflicts:
            rows = [
                (each.number, *(short(text, 120) for text in (each.question, each.kept, each.refused)))
                for each in report.entries.conflicts[:50]
            ]
            title = "another answer is there; --replace takes the file's"
            output.print(grid(title, ("entry", "question", "kept", "left"), rows, right=["entry"]))
        for reason in report.refused[:20]:
            note(short(reason, 300), label="left out: ")
        if report.stale:
            note(" went stale: their documents are not those of the file.", label=counted(len(report.stale), "entry"))
    if not report.complete:
        raise typer.Exit(1)


def export(
    index_dir: IndexDir,
    file: Annotated[Path, typer.Argument(metavar="FILE", help=".csv or .jsonl.")],
    status: Annotated[Status | None, typer.Option(help="Only these.")] = None,
    json: Json = False,
) -> None:
    """Write the entries to a file that `import` reads: to edit them elsewhere, or for another index."""
    from kraq_dspy.build.catalogue.files import entries_text

    form = file.suffix.lower().removeprefix(".")
    if form not in ("csv", "jsonl"):
        raise ConfigError(f"{str(file)!r}: name a file that ends in .csv or .jsonl.")
    entries = read_entries(index_dir, status)
    file.write_text(entries_text(entries, form), "utf-8", newline="")
    if json:
        print_json({"file": str(file), "entries": len(entries)})
    else:
        say(f"{counted(len(entries), 'entry')} in {file}")


def seed(
    index_dir: IndexDir,
    calls: Calls,
    limits: Limits,
    starters: Annotated[
        int | None, typer.Option(min=1, help="Only the N that `kraq questions --starters` lists.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most N new questions.")] = None,
    approve: Approve = False,
    program: Annotated[
        str | None, typer.Option("--program", "-p", help="What answers them; see kraq ask --programs.")
    ] = None,
    retriever: Annotated[str | None, typer.Option(help="What finds the passages.")] = None,
    json: Json = False,
) -> None:
    """Answer the index's representative questions, and keep the answers for review.

    Run it again to go on after an interruption, or after the index has grown: what is there is not asked again.
    """
    from kraq_dspy.build.catalogue.seed import seed_answers
    from kraq_dspy.workspace.choices import DEFAULT_PROGRAM, choose_program

    choice = choose_program(program or DEFAULT_PROGRAM, retriever)
    if choice.inner is not None:
        raise ConfigError(
            f"{program} answers from the catalogue; seed it with the program behind: {choice.inner.spec.name}, ..."
        )
    with opened_with_models(index_dir, calls, limits, json=json) as (space, entries, bars):
        chosen = None if starters is None else [each.question for each in space.starters(starters)]
        report = seed_answers(
            space.index, entries, space.make_program(choice), space.models,
            by=user(), questions=chosen, limit=limit, approve=approve, progress=bars,
        )  # fmt: skip
    if json:
        print_json(report)
        return
    show_counts(index_dir, report)
    for failure in report.failures[:10]:
        note(short(failure.reason, 240), label="failed: ")
    waiting = report.unanswered + (0 if approve else report.answered)
    if waiting:
        say(f"{waiting:,} wait for review: {command('explore', index_dir, '--edit')}")


def synthesize(
    index_dir: IndexDir,
    calls: Calls,
    limits: Limits,
    audience: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Who will ask; a critic judges relevance to them.")
    ] = None,
    chunk_tokens: Annotated[int, typer.Option(min=1, help="Of the passages asked about.")] = 2000,
    overlap: Annotated[int, typer.Option(min=0, help="Tokens that neighbours share.")] = 200,
    limit: Annotated[int | None, typer.Option(min=1, help="Only N passages, spread evenly.")] = None,
    critics: Annotated[
        Critics | None,
        typer.Option(
            help="ratings: three of them rate each pair, 1 to 5. roundtrip: the question must find its passage, and "
            "that give the answer again. Unset: roundtrip for a judge below two billion parameters.",
        ),
    ] = None,
    keep: Annotated[
        int | None, typer.Option(min=1, max=5, help="Keep pairs that every critic rates at least this; unset: 5.")
    ] = None,
    approve: Approve = False,
    json: Json = False,
) -> None:
    """Make a question and its answer from each passage of the documents, and keep those that critics let pass: is it
    answered there, does anybody ask it, can it be understood alone?

    Written by the role generator, judged by the role judge. Run it again to go on; nothing is asked twice.
    """
    from kraq_dspy.build.catalogue.synthesize import SyntheticPlan, make_synthetic_pairs
    from kraq_dspy.settings import ChunkSettings

    if audience is not None and not audience.strip():
        raise ConfigError("--audience is empty; say who is to be answered.")
    if critics == "roundtrip" and (audience is not None or keep is not None):
        raise ConfigError("--audience and --keep are for --critics ratings; roundtrip rates nothing.")
    plan = SyntheticPlan(audience, keep, ChunkSettings(chunk_tokens, overlap), limit, critics)
    with opened_with_models(index_dir, calls, limits, write=True, json=json) as (space, entries, bars):
        find = space.retriever("dense")
        report = make_synthetic_pairs(
            space.index, entries, space.models, plan, by=user(), approve=approve, retriever=find, progress=bars
        )
    if json:
        print_json(report)
        return
    show_counts(index_dir, report)
    if report.added and not approve:
        say(f"{report.added:,} wait for review: {command('explore', index_dir, '--edit')}")
    if report.failures:
        note(f"what failed, and why: {command('status', index_dir)}; run it again to try once more.")


@contextmanager
def opened_catalogue(index_dir: Path, *, make: bool = True) -> "Iterator[tuple[Index, Catalogue]]":
    """The index's records and its catalogue to change; a new one where there is none, unless `make` is false."""
    from kraq_dspy.asset.store.catalogue import CATALOGUE, Catalogue
    from kraq_dspy.asset.store.index import Index

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


def read_entries(index_dir: Path, status: Status | None) -> "list[CatalogueEntry]":
    from kraq_dspy.asset.store.index import Index
    from kraq_dspy.build.catalogue.sources import opened_catalogue

    with Index.open(index_dir) as index, opened_catalogue(index.path) as entries:
        return entries.entries(status) if entries else []


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
