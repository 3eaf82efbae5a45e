"""Keeps prepared answers by hand, from files, programs and documents: `kraq faq`."""

import getpass
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from kraq_dspy.apps.cli.options import First, Flag, IndexDir, Json, Owner, Scoped, command_class, scoped_view
from kraq_dspy.apps.cli.terminal import command, counted, grid, note, output, print_json, say, short, show_counts
from kraq_dspy.asset.store.faq import FAQ, FaqCache, NewEntry
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, FaqError
from kraq_dspy.indexing.faq.review import approve as approve_entry
from kraq_dspy.indexing.faq.sources import opened_faq as faq_of, sources_of
from kraq_dspy.records import FaqEntry

Numbers = Annotated[list[int], Argument(metavar="NUMBERS", help="Numbers of entries.")]
Status = Literal["pending", "approved", "stale"]


@command_class
class OfFaq(Owner):
    """The options that all commands of an FAQ cache share: the index, and that its owner asks."""

    index_dir: IndexDir


@command_class
class AddEntries(OfFaq):
    """Add a question and its answer, or answer a question that is there.

    When a source changes, it goes to review. Without an answer, QUESTION is a file of entries: csv, tsv, jsonl or
    json with the columns question, answer, and if need be sources, status. kraq lists invalid rows and answers that
    contradict the FAQ cache's, leaves them out, and exits with 1.
    """

    question: Annotated[str, Argument(metavar="QUESTION|FILE", help="The question, as people ask it; or a file.")]
    answer: Annotated[str | None, Argument(help="Answer to the question.")] = None
    source: Annotated[
        list[str] | None, Option(metavar="DOCUMENT_ID", help="Document that supports the answer; repeatable.")
    ] = None
    pending: Annotated[bool, Flag("--pending", help="Serve it only after somebody approves it.")] = False
    replace: Annotated[bool, Flag("--replace", help="Replace existing answers.")] = False
    json: Json = False

    def run(self) -> None:
        if self.answer is None:
            self._import(Path(self.question))
            return
        with self.readable(self.index_dir) as index:  # before there is an FAQ cache, which a wrong id must not make
            sources = sources_of(index, self.source or ())
        if not self.answer.strip():
            raise FaqError("The answer is empty. Write what people should read.")
        new = NewEntry(self.question, self.answer, "pending" if self.pending else "approved", sources)
        with opened_faq(self) as (_, entries):
            entry = entries.add(new, by=user(), replace=self.replace)
        if self.json:
            print_json(entry)
        else:
            say(f"Entry {entry.number}, {entry.status}: ", short(entry.question, 200))

    def _import(self, file: Path) -> None:
        from kraq_dspy.indexing.faq.files import import_answers  # with DSPy, for which an entry need not wait

        if self.source:
            raise ConfigError("--source goes with one answer; a file has a column `sources`.")
        with opened_faq(self) as (index, entries):
            report = import_answers(index, entries, file, by=user(), replace=self.replace, pending=self.pending)
        if self.json:
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
                note(
                    " went stale: their documents are not those of the file.", label=counted(len(report.stale), "entry")
                )
        if not report.complete:
            raise typer.Exit(1)


@command_class
class ListEntries(Scoped, OfFaq):
    """List the entries by number, and how programs failed at their questions.

    With --out, write them to a file that `add` reads: to edit them elsewhere, or for another index.
    With --scope LABEL, list those that somebody with this label gets.
    """

    status: Annotated[Status | None, Option(help="Only entries with this status.")] = None
    limit: First = None
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="FILE", help="Write the entries to a .csv or .jsonl file.")
    ] = None
    json: Json = False

    def run(self) -> None:
        form = "" if self.out is None else self.out.suffix.lower().removeprefix(".")
        if self.out is not None and form not in ("csv", "jsonl"):
            raise ConfigError(f"{str(self.out)!r}: name a file that ends in .csv or .jsonl.")
        entries = read_entries(self, self.status)
        shown = entries[: self.limit]
        if self.out is not None:
            from kraq_dspy.indexing.faq.files import entries_text  # with DSPy, for which a list need not wait

            self.out.write_text(entries_text(shown, form), "utf-8", newline="")
            if self.json:
                print_json({"file": str(self.out), "entries": len(shown)})
            else:
                say(f"{counted(len(shown), 'entry')} in {self.out}")
            return
        if self.json:
            print_json(shown)
            return
        if not entries:
            say(f"No {self.status} entries." if self.status else "The FAQ cache is empty.")
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


@command_class
class ApproveEntries(OfFaq):
    """Serve these entries from now on, as they and their documents are now."""

    numbers: Numbers
    json: Json = False

    def run(self) -> None:
        with opened_faq(self, make=False) as (index, entries):
            done = [approve_entry(index, entries, number, by=user()) for number in existing(entries, self.numbers)]
        if self.json:
            print_json(done)
        else:
            say(f"Approved: {', '.join(str(entry.number) for entry in done)}")


@command_class
class RemoveEntries(OfFaq):
    """Take entries out.

    kraq never reuses their numbers.
    """

    numbers: Numbers
    json: Json = False

    def run(self) -> None:
        with opened_faq(self, make=False) as (_, entries):
            removed = existing(entries, self.numbers)
            for number in removed:
                entries.remove(number, by=user())
            left = entries.counts()
        if self.json:
            print_json({"removed": removed, "left": left})
        else:
            say(f"Removed {len(removed)}; left: {sum(left.values()):,}.")


@contextmanager
def opened_faq(of_faq: OfFaq, *, make: bool = True) -> Iterator[tuple[Index, FaqCache]]:
    """The index's records and its FAQ cache to change; a new one if there is none, unless `make` is false."""

    index_dir = of_faq.index_dir
    with of_faq.readable(index_dir) as index:
        path = index.path / FAQ
        if not make and not path.is_file():
            begin = command("faq", "add", index_dir, "QUESTION", "ANSWER")
            raise FaqError(f"{str(index_dir)!r} has no FAQ cache yet. Begin one: {begin}")
        with FaqCache(path) as entries:
            yield index, entries


def read_entries(of_faq: OfFaq, status: Status | None) -> list[FaqEntry]:
    """The entries of this status; for a scope the approved ones whose sources it may all read."""
    scope = of_faq.scope()
    if scope is not None and not scope.is_everything:
        with scoped_view(of_faq.index_dir, scope) as view:
            served = view.answers.entries() if (view.path / FAQ).is_file() else []
        return [entry for entry in served if status in (None, entry.status)]
    with of_faq.readable(of_faq.index_dir) as index, faq_of(index.path) as entries:
        return entries.entries(status) if entries else []


def existing(entries: FaqCache, numbers: list[int]) -> list[int]:
    """Each number once. Raises FaqError before anything is done, if one does not exist."""
    unique = list(dict.fromkeys(numbers))
    for number in unique:
        entries.get(number)
    return unique


def user() -> str:
    """Return the user's name, for the history of an entry."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container's user may have none
        return "somebody"
