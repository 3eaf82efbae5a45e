"""Decides what becomes of an entry: what is added, in conflict, stale or approved; every version is kept.

The catalogue (`catalogue.db` in the index folder) needs no lock: a person may review it while another process answers
from it.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.asset.store.entries import EntryReader, EntryTable
from kraq_dspy.errors import CatalogueConflictError, CatalogueError
from kraq_dspy.records import AnswerEvidence, AnswerSource, CatalogueEntry, Document, content_id

CATALOGUE = "catalogue.db"
STATUSES = ("pending", "approved", "stale")


@dataclass(frozen=True, slots=True)
class NewEntry:
    """What a caller knows of an entry; without an answer it is pending, whatever `status` says.

    `given`, `evidence`, `asked` and `failure` are as in `CatalogueEntry`; an entry that is there keeps its own.
    """

    question: str
    answer: str = ""
    status: str = "approved"
    sources: tuple[AnswerSource, ...] = ()
    origin: str = "person"
    given: str = ""
    evidence: tuple[AnswerEvidence, ...] = ()
    asked: int = 0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two answers to one question: the catalogue's, under its number, and the one that was not taken."""

    number: int
    question: str
    kept: str
    refused: str


@dataclass(frozen=True, slots=True)
class AddReport:
    """Numbers of entries by what became of them; `answered` were pending before. Conflicts were left as they are."""

    added: tuple[int, ...] = ()
    answered: tuple[int, ...] = ()
    replaced: tuple[int, ...] = ()
    unchanged: tuple[int, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A version of an entry, and what made it: added, asked, answered, replaced, approved, stale, edited, removed."""

    action: str
    entry: CatalogueEntry


class Catalogue(SharedByCopies, AbstractContextManager["Catalogue"]):
    """Entries by number; closed at the end of a `with` block. Safe for threads and for several processes."""

    def __init__(self, path: Path, *, write: bool = True) -> None:
        """Makes the file where there is none. Raises IndexStateError for one that is damaged or of a newer version."""
        self.path = path
        self._table = EntryTable(path, write=write)

    @property
    def writable(self) -> bool:
        return self._table.writable

    def close(self) -> None:
        self._table.close()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # Reading

    def revision(self) -> int:
        """Grows with every change, of this or another process."""
        with self._table.reading() as entries:
            return entries.revision()

    def changed_since(self, revision: int) -> tuple[int, dict[int, CatalogueEntry | None]]:
        """(the revision now, the entries that were changed after `revision` by number, None for those removed).

        One more failure of an entry that is there is no change. All entries where `revision` is below 0.
        """
        with self._table.reading() as entries:
            now = entries.revision()
            return now, {} if now == revision else entries.changed_since(revision)

    def entries(self, status: str | None = None) -> list[CatalogueEntry]:
        """All, or those of a status, by number."""
        with self._table.reading() as entries:
            return entries.all(status)

    def damage(self) -> list[str]:
        """What is wrong with the file, which is read in full; nothing when it is sound."""
        return self._table.damage()

    def counts(self) -> dict[str, int]:
        """Entries by status, all three."""
        with self._table.reading() as entries:
            counts = entries.counts()
        return {status: counts.get(status, 0) for status in STATUSES}

    def get(self, number: int) -> CatalogueEntry:
        """Raises CatalogueError."""
        with self._table.reading() as entries:
            return _existing(entries, number)

    def find(self, question: str) -> CatalogueEntry | None:
        """The entry of the same question, case, spaces and final punctuation apart."""
        with self._table.reading() as entries:
            return entries.find(question_key(question))

    def history(self, number: int) -> list[Change]:
        """Every version of an entry, oldest first, also of one that was removed."""
        with self._table.reading() as entries:
            return [Change(action, entry) for action, entry in entries.history(number)]

    def known_keys(self) -> set[str]:
        """Keys (`question_key`) of the questions that are there, and of those that somebody took out for good."""
        with self._table.reading() as entries:
            return entries.keys() | {question_key(entry.question) for entry in entries.removed()}

    # Changing

    def add(self, new: NewEntry, *, by: str, replace: bool = False) -> CatalogueEntry:
        """One entry; see `add_all`. Raises CatalogueConflictError when the question has another answer already."""
        report = self.add_all([new], by=by, replace=replace)
        if report.conflicts:
            [conflict] = report.conflicts
            raise CatalogueConflictError(
                f"Entry {conflict.number} answers this question already, with {_shown(conflict.kept)}, not with "
                f"{_shown(conflict.refused)}. Keep it, or replace its answer (--replace), which keeps the old version."
            )
        [number] = report.added + report.answered + report.replaced + report.unchanged
        return self.get(number)

    def add_all(self, entries: Iterable[NewEntry], *, by: str, replace: bool = False) -> AddReport:
        """All in one transaction. A question that is there: without an answer it gets this one; with the same answer it
        is approved if this one is, and gets other sources if this one has some; with another one it is a conflict,
        reported and left. With `replace` it becomes what this one is, and keeps its old version."""
        outcomes: dict[str, list[int]] = {"added": [], "answered": [], "replaced": [], "unchanged": []}
        conflicts: list[Conflict] = []
        with self._table.writing() as stored:
            for new in entries:
                question, answer, status = _checked(new)
                old = stored.find(question_key(question))
                if old is None:
                    entry = CatalogueEntry(
                        0, question, answer, status, new.sources, new.origin,
                        given=new.given, evidence=new.evidence, asked=new.asked, failure=new.failure,
                    )  # fmt: skip
                    outcomes["added"].append(stored.insert(entry, question_key(question), "added", by).number)
                elif not answer or (answer == old.answer and _says_no_more(new, status, old, replace)):
                    outcomes["unchanged"].append(old.number)
                elif old.answer and answer != old.answer and not replace:
                    conflicts.append(Conflict(old.number, question, old.answer, answer))
                else:
                    action = "replaced" if old.answer else "answered"
                    sources = new.sources or old.sources
                    stored.update(old, action, by, answer=answer, status=status, sources=sources)
                    outcomes[action].append(old.number)
        return AddReport(**{name: tuple(numbers) for name, numbers in outcomes.items()}, conflicts=tuple(conflicts))

    def change(
        self, number: int, *, by: str, action: str = "edited", version: int | None = None, **fields: Any
    ) -> CatalogueEntry:
        """A new version with other `answer`, `status` or `sources`. Raises CatalogueError, also for an approval of an
        entry without an answer, and CatalogueConflictError where the entry is no longer of this `version`."""
        with self._table.writing() as entries:
            old = _existing(entries, number, version)
            changed = dataclasses.replace(old, **fields)
            if changed.status not in STATUSES:
                raise CatalogueError(f"There is no status {changed.status!r}; there are: {', '.join(STATUSES)}.")
            if changed.status == "approved" and not changed.answer.strip():
                raise CatalogueError(f"Entry {number} has no answer yet. Give it one before it is approved.")
            return entries.update(old, action, by, **fields)

    def remove(self, number: int, *, by: str, version: int | None = None) -> None:
        """Its history stays. Raises CatalogueError, and CatalogueConflictError as `change` does."""
        with self._table.writing() as entries:
            entries.remove(_existing(entries, number, version), by)

    def collect(
        self, question: str, answer: str, evidence: Sequence[AnswerEvidence], failure: str = ""
    ) -> CatalogueEntry:
        """Note that a program failed at a question: a pending entry, or one more failure of the entry that is there."""
        question = question.strip()
        with self._table.writing() as entries:
            old = entries.find(question_key(question))
            if old is None:
                entry = CatalogueEntry(
                    0,
                    question,
                    "",
                    "pending",
                    origin="failed",
                    given=answer,
                    evidence=tuple(evidence),
                    asked=1,
                    failure=failure,
                )
                return entries.insert(entry, question_key(question), "asked", "")
            failed_again = dataclasses.replace(
                old,
                given=answer or old.given,
                evidence=tuple(evidence) or old.evidence,
                asked=old.asked + 1,
                failure=failure or old.failure,
            )
            entries.rewrite(failed_again)
            return failed_again

    def keep(self, new: NewEntry, *, by: str) -> bool:
        """Take an answer over that was found right, unless the question has one, or somebody took it out for good."""
        key = question_key(new.question)
        with self._table.reading() as entries:
            if any(question_key(entry.question) == key for entry in entries.removed()):
                return False
        report = self.add_all([new], by=by)
        return bool(report.added or report.answered)

    def flag_stale(self, hashes: Mapping[str, str]) -> list[int]:
        """Mark the approved entries of which a source has another hash now, or is gone; returns their numbers.

        `hashes` are those of the documents that exist, by id; see `content_hash`.
        """
        if not any(is_stale(entry, hashes) for entry in self.entries("approved")):
            return []
        with self._table.writing() as entries:
            stale = [entry for entry in entries.all("approved") if is_stale(entry, hashes)]
            for entry in stale:
                entries.update(entry, "stale", "", status="stale")
        return [entry.number for entry in stale]


def _existing(entries: EntryReader, number: int, version: int | None = None) -> CatalogueEntry:
    entry = entries.get(number)
    if entry is None:
        raise CatalogueError(f"The catalogue has no entry {number}. See them all: kraq catalogue list DIR")
    if version not in (None, entry.version):
        raise CatalogueConflictError(f"Entry {number} has changed meanwhile. Look at it again.")
    return entry


def question_key(question: str) -> str:
    """Equal for questions that differ in case, width, spaces or final punctuation alone."""
    plain = unicodedata.normalize("NFKC", question).casefold()
    return re.sub(r"[\s?!.。…]+$", "", " ".join(plain.split()))


def content_hash(document: Document) -> str:
    """Depends on what a reader sees of the document: title and text."""
    return content_id("source", document.title, document.text)


def is_stale(entry: CatalogueEntry, hashes: Mapping[str, str]) -> bool:
    """Whether a source document is gone, or was another one when the answer was given."""
    return any(
        source.document_id not in hashes or source.content_hash not in ("", hashes[source.document_id])
        for source in entry.sources
    )


def _checked(new: NewEntry) -> tuple[str, str, str]:
    question, answer = new.question.strip(), new.answer.strip()
    if not question_key(question):
        raise CatalogueError(f"{new.question!r} is no question. Every entry needs one.")
    if new.status not in STATUSES:
        raise CatalogueError(f"There is no status {new.status!r}; there are: {', '.join(STATUSES)}.")
    return question, answer, new.status if answer else "pending"


def _says_no_more(new: NewEntry, status: str, old: CatalogueEntry, replace: bool) -> bool:
    """Whether an entry with the same answer brings neither other sources nor approval (or any status, to `replace`)."""
    same_sources = not new.sources or new.sources == old.sources
    return same_sources and (status == old.status or (status != "approved" and not replace))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
