"""Changes and checks an index: `kraq update`, `remove` and `check`."""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from kraq_dspy.apps.cli.model_options import Calls, Columns, Limits, Models
from kraq_dspy.apps.cli.options import Flag, IndexDir, Json, command_class
from kraq_dspy.apps.cli.progress import Bars, run_build
from kraq_dspy.apps.cli.terminal import command, note, print_json, say, short
from kraq_dspy.asset.corpus.files import readers_of
from kraq_dspy.asset.store import access
from kraq_dspy.errors import ConfigError
from kraq_dspy.indexing.index.change import add_documents, remove_documents, removed_before, update_index
from kraq_dspy.indexing.index.check import CheckReport, Problem, check_index, repair_index
from kraq_dspy.indexing.index.opening import documents_of, read_to_the_first


@command_class
class Remove(Calls, Limits):
    """Remove documents, with all that was made from them alone.

    An id that is already gone is no error.
    """

    index_dir: IndexDir
    document_ids: Annotated[list[str], Argument(metavar="IDS", help="Ids of documents.")]
    json: Json = False

    def run(self) -> None:
        gone = removed_before(self.index_dir, self.document_ids)
        to_remove = [id for id in dict.fromkeys(self.document_ids) if id not in gone]
        if gone:
            named = ", ".join(map(repr, sorted(gone)[:5])) + (", ..." if len(gone) > 5 else "")
            note(f"{named} had been removed from {self.index_dir} before.")
        if not to_remove:
            if self.json:
                print_json({"path": self.index_dir, "documents": {"added": 0, "changed": 0, "removed": 0}})
            return
        settings = self.settings_of(self.index_dir)
        run_build(partial(remove_documents, self.index_dir, to_remove), settings, self, json=self.json)


@command_class
class Update(Calls, Limits, Columns):
    """Update the index from a corpus: add, redo and remove documents.

    It adds new documents, redoes changed ones, and removes those that are gone. With --add the files are documents
    to add: those with a known id (the file's name, or the id of its row) replace what was there, and nothing is
    removed.
    """

    index_dir: IndexDir
    corpus: Annotated[
        list[Path], Argument(metavar="CORPUS", help="The corpus as it is now; with --add, files and folders.")
    ]
    add: Annotated[bool, Flag("--add", help="Add these documents, and remove none.")] = False
    recluster: Annotated[
        bool, Flag("--recluster", help="Find the communities again, at the price of about half their questions.")
    ] = False
    json: Json = False

    def run(self) -> None:
        if self.add:
            self._add()
            return
        if len(self.corpus) > 1:
            raise ConfigError("One file or folder is the corpus; several files are added with --add.")
        settings = self.settings_of(self.index_dir)
        run_build(
            partial(update_index, self.index_dir, self.corpus[0], recluster=self.recluster),
            settings,
            self,
            json=self.json,
        )

    def _add(self) -> None:
        if self.recluster:
            raise ConfigError("--recluster goes with a whole corpus, not with --add.")
        settings = self.settings_of(self.index_dir)
        corpora = [read_to_the_first(documents_of(file, settings, self.index_dir)) for file in self.corpus]
        for file in self.corpus:
            access.withdraw(self.index_dir, readers_of(file))
        run_build(partial(add_documents, self.index_dir, chain.from_iterable(corpora)), settings, self, json=self.json)


@command_class
class Check(Models):
    """Verify an index: nothing is damaged, stale or missing.

    Its files and records are intact, and every id leads somewhere. Ends with 1 if something is wrong.
    """

    index_dir: IndexDir
    repair: Annotated[bool, Flag("--repair", help="Fix what can be fixed; this may call models.")] = False
    json: Json = False

    def run(self) -> None:
        if self.repair:
            settings = self.settings_of(self.index_dir)
            with Bars(settings, quiet=self.json) as bars:
                report = repair_index(self.index_dir, settings=settings, progress=bars)
        else:
            if self.trust:
                self.settings_of(self.index_dir)
            report = check_index(self.index_dir)

        if self.json:
            state = {
                "whole": report.whole,
                "checked": report.checked,
                "problems": report.problems,
            }
            print_json({**state, "answers": report.answers})
        else:
            self._show(report)
        if not report.whole:
            raise typer.Exit(1)

    def _show(self, report: CheckReport) -> None:
        if report.whole:
            checked = sum(report.checked.values())
            say((f"{self.index_dir} is whole", "green"), f": {checked:,} records and vectors checked.")
        else:
            self._show_problems(report.problems)

        waiting = []
        for status, count in (report.answers or {}).items():
            if count and status != "approved":
                waiting.append(f"{count:,} {status}")
        if waiting:
            shown = " and ".join(waiting)
            explore = command("serve", self.index_dir, "--open", "--edit")
            note(f"entries of the FAQ cache that wait: {shown}. {explore}")

    def _show_problems(self, problems: Sequence[Problem]) -> None:
        for problem in problems:
            more = ", ..." if problem.count > len(problem.ids) else ""
            ids = f" ({', '.join(problem.ids)}{more})"
            listed = short(ids, 120) if problem.ids else ""
            say((f"{problem.count:,} ", "yellow"), short(problem.what, 200), listed)

        repairs = {problem.repair for problem in problems}
        if "precompute" in repairs:
            note(command("precompute", self.index_dir), label="Embeddings: ")
        if "answers" in repairs:
            remove = command("faq", "remove", self.index_dir, "NUMBERS")
            note(remove, label="Prepared answers: ")
        if not repairs.isdisjoint(("resume", "flag")):
            note(command("check", self.index_dir, "--repair"), label="To mend it: ")
