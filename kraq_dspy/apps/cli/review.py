"""Lets a person decide about what waits, entry by entry, or a model answer it: `kraq catalogue review`."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from kraq_dspy.apps.cli.catalogue import (
    Approve,
    By,
    Status,
    opened_catalogue,
    read_entries,
    show_answering,
    show_entry,
    user,
)
from kraq_dspy.apps.cli.options import Calls, IndexDir, Json, Limits, opened
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import errors, grid, output, print_json, short
from kraq_dspy.errors import ConfigError

if TYPE_CHECKING:
    from kraq_dspy.asset.store.catalogue import Catalogue
    from kraq_dspy.asset.store.index import Index
    from kraq_dspy.build.catalogue.review import ReviewFilter
    from kraq_dspy.records import CatalogueEntry


KEYS = "[a]pprove  [e]dit the answer  [s]kip  [r]emove  [q]uit: "


def review(
    index_dir: IndexDir,
    calls: Calls,
    limits: Limits,
    status: Annotated[Status | None, typer.Option(help="Only pending, or only stale entries.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most N entries.")] = None,
    model: Annotated[
        bool, typer.Option(help="A model answers: the role teacher of kraq.toml if there is one, else answerer.")
    ] = False,
    approve: Approve = False,
    failure: Annotated[
        str, typer.Option(metavar="CLASS", help="Only what programs failed at in this way; see --classes.")
    ] = "",
    classes: Annotated[bool, typer.Option(help="Only say in which ways programs failed, and how often.")] = False,
    retriever: Annotated[
        str | None, typer.Option(help="With --model: what finds passages where none were noted.")
    ] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Go through the entries that wait: approve, answer, or remove them. Each decision is written at once.

    With --model, pending questions without an answer (or, with --status stale, stale ones) get one that waits for your
    approval.
    """
    if status == "approved":
        raise ConfigError("Approved entries need no review. To change one: kraq catalogue add DIR ... --replace")
    if classes:
        _show_classes(index_dir, json=json)
        return
    which = _which(status, limit, failure)
    if model:
        with opened(index_dir, calls, limits) as space:
            _by_model(space, retriever, which, by, approve=approve, json=json)
        return
    if approve:
        raise ConfigError("--approve goes with --model. To approve entries unseen: kraq catalogue approve DIR NUMBERS")
    if not sys.stdin.isatty():
        raise ConfigError(
            "A review asks at a terminal, and standard input is none. Use --model, or kraq catalogue approve, add, "
            "remove and import."
        )
    with opened_catalogue(index_dir, make=False) as (index, entries):
        decisions = _in_person(index, entries, status, which, by or user(), console=errors if json else output)
    if json:
        print_json(dict(decisions))


def _which(status: Status | None, limit: int | None, failure: str) -> "ReviewFilter":
    from kraq_dspy.build.catalogue.review import ReviewFilter
    from kraq_dspy.programs.qa_search.failures import CLASSES

    if failure not in ("", *CLASSES):
        raise ConfigError(f"There is no class {failure!r} of failures; there are: {', '.join(CLASSES)}.")
    return ReviewFilter(status or "pending", limit, failure)


def _show_classes(index_dir: Path, *, json: bool) -> None:
    from kraq_dspy.programs.qa_search.failures import CLASSES, count_classes

    entries = read_entries(index_dir, None)
    answered = count_classes(entry for entry in entries if entry.status == "approved")
    all_classes = count_classes(entries)
    if json:
        print_json({name: {"failed": all_classes[name], "answered": answered[name]} for name in CLASSES})
        return
    rows = [(name, all_classes[name], answered[name], means) for name, means in CLASSES.items()]
    headings = ("class", "questions", "answered since", "what it means")
    output.print(grid("how programs failed", headings, rows, right=headings[1:3]))


def _by_model(
    space: Any, retriever: str | None, which: "ReviewFilter", by: str | None, *, approve: bool, json: bool
) -> None:
    from kraq_dspy.build.catalogue.review import answer_with_model

    with (
        opened_catalogue(space.index.path, make=False) as (_, entries),
        Bars(space.models.settings, quiet=json) as bars,
    ):
        report = answer_with_model(
            space.index, entries, space.models, lambda: space.retriever(retriever),
            which, by=by, approve=approve, progress=bars,
        )  # fmt: skip
    if json:
        print_json(report)
        return
    show_answering(report.model, report, {"asked": report.asked}, label="entry {}: ")


def _in_person(
    index: "Index", entries: "Catalogue", status: Status | None, which: "ReviewFilter", by: str, console: Any
) -> Counter[str]:
    from kraq_dspy.build.catalogue.review import evidence_for, source_states, waiting
    from kraq_dspy.errors import CatalogueError
    from kraq_dspy.programs.qa_search.failures import count_classes

    listed = waiting(entries, status, which.failure)
    numbers = [entry.number for entry in listed][: which.limit]
    decisions: Counter[str] = Counter(approved=0, answered=0, removed=0, skipped=0)
    interrupted = False
    if counts := count_classes(listed):
        console.print("Failed: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()), style="dim")
    if not numbers:
        console.print("Nothing waits for review.")
    try:
        for place, number in enumerate(numbers, start=1):
            try:
                entry = entries.get(number)
            except CatalogueError:
                continue  # somebody else removed it
            if entry.status == "approved":
                continue
            console.print(Text(f"\n{place} of {len(numbers)}", style="dim"))
            show_entry(entry, evidence=evidence_for(index, entry), console=console)
            for document, state in source_states(index, entry).items():
                if state != "as it was":
                    console.print(Text.assemble(short(document, 80), (f" {state}", "red")))
            decision = _decision(index, entries, entry, by)
            if decision == "quit":
                break
            decisions[decision] += 1
    except (EOFError, KeyboardInterrupt) as error:
        errors.print("\n[yellow]Stopped.[/] What was decided is kept.")
        interrupted = isinstance(error, KeyboardInterrupt)
    console.print(", ".join(f"{count} {what}" for what, count in decisions.items()))
    if interrupted:
        raise typer.Exit(130)
    return decisions


def _decision(index: "Index", entries: "Catalogue", entry: "CatalogueEntry", by: str) -> str:
    """Asks until something is decided, and does it."""
    from kraq_dspy.build.catalogue.review import approve
    from kraq_dspy.errors import KraqError

    while True:
        key = _ask(KEYS).strip().lower()
        try:
            if key in ("q", "quit"):
                return "quit"
            if key in ("s", "skip"):
                return "skipped"
            if key in ("r", "remove"):
                entries.remove(entry.number, by=by)
                return "removed"
            if key in ("a", "approve"):
                approve(index, entries, entry.number, by=by)
                return "approved"
            if key in ("e", "edit") and _answered(index, entries, entry, by):
                return "answered"
        except KraqError as error:  # no answer yet, a document that is not there: say so, and ask again
            errors.print(Text(str(error), style="yellow"))


def _answered(index: "Index", entries: "Catalogue", entry: "CatalogueEntry", by: str) -> bool:
    """A new answer and what it rests on; False where the person gave none."""
    from kraq_dspy.build.catalogue.review import answer

    text = _ask("Answer (empty: back): ").strip()
    if not text:
        return False
    now = "; ".join(source.document_id for source in entry.sources)
    named = _ask(f"Document ids it rests on, with semicolons (Enter: {now or 'none'}; -: none): ").strip()
    ids = None if not named else [] if named == "-" else [part.strip() for part in named.split(";") if part.strip()]
    answer(index, entries, entry.number, text, by=by, document_ids=ids)
    return True


def _ask(prompt: str) -> str:
    """A line from the terminal. The prompt goes to standard error, so that --json has standard output to itself."""
    errors.print(Text(prompt, style="bold"), end="")
    return input()
