"""Keeps prepared answers: what is added, in conflict, stale or approved, and who changed it last.

The FAQ cache (`faq.db` in the index folder) needs no lock: a person may review it while another process answers
from it.
"""

import dataclasses
import sqlite3
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.asset.store import access
from kraq_dspy.asset.store.codec import checksum, dumps, loads, restored, storable
from kraq_dspy.asset.store.database import Database
from kraq_dspy.errors import FaqConflictError, FaqError, IndexStateError, quoted
from kraq_dspy.records import AnswerEvidence, AnswerSource, Document, FaqEntry, content_id

FAQ = "faq.db"
STATUSES = ("pending", "approved", "stale")
MADE_BY_MODELS = ("kraq", "synthetic", "answered")
"""Origins of entries whose answers a model wrote."""
SCHEMA_VERSION = 3

_SCHEMA = (
    # An entry that was removed stays with its question, which is not to be added again, and its number.
    # `revision` grows with every change of any entry.
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, key NOT NULL, status NOT NULL, revision NOT NULL, data NOT NULL,"
    " sum NOT NULL)",
    "CREATE UNIQUE INDEX entries_key ON entries (key) WHERE status <> 'removed'",
    "CREATE INDEX entries_status ON entries (status)",
    "CREATE INDEX entries_revision ON entries (revision)",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


@dataclass(frozen=True, slots=True)
class NewEntry:
    """What a caller knows of an entry; without an answer it is pending, whatever `status` says.

    `given`, `evidence`, `asked` and `failure` are as in `FaqEntry`; an entry that is there keeps its own. `number` is
    the one that a new entry gets if it is free; 0 is the next one.
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
    number: int = 0


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two answers to one question: the FAQ cache's, under its number, and the one that was not taken."""

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
class Withdrawal:
    """Numbers of entries: `withdrawn` ones went with their documents; `kept` ones rest on them and stay, to be looked
    at by somebody."""

    withdrawn: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()


class FaqCache(SharedByCopies, AbstractContextManager["FaqCache"]):
    """Questions with prepared answers, by number. Safe for threads and for several processes. A `with` block closes
    the
    cache.

    Args:
        path: the SQLite file.
        write: open the file for writing; False to read only.

    >>> with FaqCache(Path("faq.db")) as faq:
    ...     faq.add(NewEntry("When did Ada die?", "In 1852."), by="me").number
    1
    """

    def __init__(self, path: Path, *, write: bool = True) -> None:
        """Makes the file if there is none. Raises IndexStateError for one that is damaged or of a newer version."""
        self.path = path
        if write and not path.exists():
            with suppress(OSError):  # which the database tells in words
                path.touch()
                access.follow_index(path)  # before SQLite makes its log, which has the permissions of the file

        self._database = Database(path, write=write)
        try:
            with self._database.reading() as connection:
                [version] = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, SCHEMA_VERSION):
                raise IndexStateError(
                    f"{str(path)!r} is an FAQ cache of version {version}, and this library reads {SCHEMA_VERSION}. "
                    "Open it with the version of kraq-dspy that wrote it."
                )

            if version == 0:
                with self._database.writing() as connection:
                    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # another may have been quicker
                        for statement in _SCHEMA:
                            connection.execute(statement)
        except BaseException:
            self._database.close()
            raise

    @property
    def can_be_changed(self) -> bool:
        """Whether it was opened for writing."""
        return self._database.write

    def close(self) -> None:
        self._database.close()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # Reading

    def changed_since(self, revision: int) -> tuple[int, dict[int, FaqEntry | None]]:
        """(the revision now, the entries that were changed after `revision` by number, None for those removed).

        The revision grows with every change, of this or another process; one more failure of an entry that is there is
        no change. All entries where `revision` is below 0.
        """
        with self._database.snapshot() as connection:
            [now] = connection.execute("SELECT coalesce(max(revision), 0) FROM entries").fetchone()
            entries = {entry.number: entry for entry in _entries(connection, "AND revision > ?", revision)}
            later = connection.execute("SELECT number FROM entries WHERE revision > ?", (revision,))
            return int(now), {number: entries.get(number) for (number,) in later}

    def entries(self, status: str | None = None) -> list[FaqEntry]:
        """All, or those of a status, by number."""
        with self._database.reading() as connection:
            return _entries(connection, "AND (? IS NULL OR status = ?) ORDER BY number", status, status)

    def damage(self) -> list[str]:
        """Return what is wrong with the file, which is read in full; nothing when it is sound."""
        if faults := self._database.damage():
            return faults
        try:
            with self._database.snapshot() as connection:
                _entries(connection)
        except IndexStateError as error:
            return [str(error)]
        return []

    def counts(self) -> dict[str, int]:
        """Entries by status, all three."""
        with self._database.reading() as connection:
            counts = dict(connection.execute("SELECT status, count(*) FROM entries GROUP BY status").fetchall())
        return {status: counts.get(status, 0) for status in STATUSES}

    def get(self, number: int) -> FaqEntry:
        """The entry of this number. Raises FaqError."""
        with self._database.reading() as connection:
            return _existing(connection, number)

    def find(self, question: str) -> FaqEntry | None:
        """The entry of the same question, case, spaces and final punctuation apart."""
        with self._database.reading() as connection:
            return _of_question(connection, question)

    def known_keys(self) -> set[str]:
        """Keys (`question_key`) of the questions that are there, and of those that somebody took out for good."""
        with self._database.reading() as connection:
            return {restored(key) for (key,) in connection.execute("SELECT key FROM entries")}

    def next_number(self) -> int:
        """The number of the next entry that is added."""
        with self._database.reading() as connection:
            [(number,)] = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM entries")
        return int(number)

    # Changing

    def add(self, new: NewEntry, *, by: str, replace: bool = False) -> FaqEntry:
        """One entry; see `add_all`. Raises FaqConflictError when the question has another answer already."""
        report = self.add_all([new], by=by, replace=replace)
        if report.conflicts:
            [conflict] = report.conflicts
            raise FaqConflictError(
                f"Entry {conflict.number} answers this question already, with {quoted(conflict.kept)}, not with "
                f"{quoted(conflict.refused)}. Keep it, or replace its answer: --replace."
            )
        [number] = report.added + report.answered + report.replaced + report.unchanged
        return self.get(number)

    def add_all(self, entries: Iterable[NewEntry], *, by: str, replace: bool = False) -> AddReport:
        """All in one transaction. If the question exists without an answer, it gets this one. If
        it has the same answer, it becomes approved if this one is, and takes over its sources.
        If it has another answer, the result reports a conflict and the entry stays. With
        `replace` it becomes what this one is."""
        outcomes: dict[str, list[int]] = {"added": [], "answered": [], "replaced": [], "unchanged": []}
        conflicts: list[Conflict] = []

        with self._database.writing() as connection:
            for new in entries:
                question, answer, status = _checked(new)
                old = _of_question(connection, question)
                if old is None:
                    entry = FaqEntry(
                        new.number, question, answer, status, new.sources, new.origin,
                        given=new.given, evidence=new.evidence, asked=new.asked, failure=new.failure,
                    )  # fmt: skip
                    outcomes["added"].append(_insert(connection, entry, by).number)
                elif not _brings_something(new, answer, status, old, replace=replace):
                    outcomes["unchanged"].append(old.number)
                elif old.answer and answer != old.answer and not replace:
                    conflicts.append(Conflict(old.number, question, old.answer, answer))
                else:
                    sources = new.sources or old.sources
                    _update(connection, old, by, answer=answer, status=status, sources=sources)
                    outcomes["replaced" if old.answer else "answered"].append(old.number)

        return AddReport(**{name: tuple(numbers) for name, numbers in outcomes.items()}, conflicts=tuple(conflicts))

    def change(self, number: int, *, by: str, version: int | None = None, **fields: Any) -> FaqEntry:
        """A new version with other `answer`, `status` or `sources`. Raises FaqError, also for an approval of an
        entry without an answer, and FaqConflictError where the entry is no longer of this `version`."""
        with self._database.writing() as connection:
            old = _existing(connection, number, version)
            changed = dataclasses.replace(old, **fields)
            _require_status(changed.status)
            if changed.status == "approved" and not changed.answer.strip():
                raise FaqError(f"Entry {number} has no answer yet. Give it one before it is approved.")
            return _update(connection, old, by, **fields)

    def remove(self, number: int, *, by: str, version: int | None = None) -> None:
        """Remove an entry but for its question, which says what is not to be added again. Raises FaqError, and
        FaqConflictError as `change` does."""
        with self._database.writing() as connection:
            entry = _existing(connection, number, version)
            bare = dataclasses.replace(entry, answer="", given="", evidence=(), changed_at=_now(), changed_by=by)
            _write(connection, bare, status="removed")

    def collect(self, question: str, answer: str, evidence: Sequence[AnswerEvidence], failure: str = "") -> FaqEntry:
        """Note that a program failed at a question: a pending entry, or one more failure of the entry that is there."""
        question = question.strip()
        with self._database.writing() as connection:
            old = _of_question(connection, question)
            if old is None:
                entry = FaqEntry(
                    0, question, "", "pending", origin="failed",
                    given=answer, evidence=tuple(evidence), asked=1, failure=failure,
                )  # fmt: skip
                return _insert(connection, entry, "")

            failed_again = dataclasses.replace(
                old,
                given=answer or old.given,
                evidence=tuple(evidence) or old.evidence,
                asked=old.asked + 1,
                failure=failure or old.failure,
            )
            _write(connection, failed_again, is_change=False)
            return failed_again

    def flag_stale(self, hashes: Mapping[str, str]) -> list[int]:
        """Mark the approved entries of which a source has another hash now, or is gone; returns their numbers.

        `hashes` are those of the documents that exist, by id; see `content_hash`.
        """
        if not any(is_stale(entry, hashes) for entry in self.entries("approved")):
            return []

        with self._database.writing() as connection:
            approved = _entries(connection, "AND status = 'approved' ORDER BY number")
            stale = [entry for entry in approved if is_stale(entry, hashes)]
            for entry in stale:
                _update(connection, entry, "", status="stale")
        return [entry.number for entry in stale]

    def withdraw(self, document_ids: Collection[str]) -> Withdrawal:
        """Forget what was said from documents that are gone, in every byte of the file.

        An entry that a model made goes, with its question, when it rests on these documents alone, or on others too and
        nobody has looked at it since. Of the others the passages go that a program saw, and what it said of them; what
        people wrote stays, since nobody else can write it again.
        """
        gone = set(document_ids)
        withdrawn: list[int] = []
        still_answered: list[int] = []
        n_changed = 0
        with self._database.writing() as connection:
            rows = connection.execute("SELECT key, status, data, sum FROM entries ORDER BY number").fetchall()
            for status, entry in ((row[1], _entry(*row)) for row in rows):
                sources = {source.document_id for source in entry.sources}
                seen = {passage.document_id for passage in entry.evidence}
                if gone.isdisjoint(sources | seen):
                    continue

                n_changed += 1
                if _goes_with(entry, gone):
                    _write(connection, _erased(entry), status="removed", key="")
                    withdrawn += [entry.number] if status != "removed" else []
                    continue

                evidence = tuple(passage for passage in entry.evidence if passage.document_id not in gone)
                given = entry.given if gone.isdisjoint(seen) else ""
                bare = dataclasses.replace(entry, evidence=evidence, given=given)
                _write(connection, bare, status=status)
                still_answered += [entry.number] if entry.answer and not gone.isdisjoint(sources) else []

        if n_changed:
            self._database.erase()
        return Withdrawal(tuple(withdrawn), tuple(still_answered))


def _brings_something(new: NewEntry, answer: str, status: str, old: FaqEntry, *, replace: bool) -> bool:
    """Whether it has another answer or other sources, approves the old one, or replaces its status."""
    if not answer:
        return False
    if answer != old.answer or new.sources not in ((), old.sources):
        return True
    return status != old.status and (status == "approved" or replace)


def _goes_with(entry: FaqEntry, gone: set[str]) -> bool:
    """Whether an entry goes with these documents: a model made it of them."""
    if entry.origin not in MADE_BY_MODELS:
        return False
    basis = {source.document_id for source in entry.sources} or {each.document_id for each in entry.evidence}
    is_as_it_was_made = entry.version - (entry.status == "stale") == 1
    return basis <= gone or (is_as_it_was_made and not basis.isdisjoint(gone))


def _erased(entry: FaqEntry) -> FaqEntry:
    """Note that an entry was erased, and give its number, which is not given again."""
    return FaqEntry(entry.number, "", "", "pending", origin=entry.origin, changed_at=_now())


def _entries(connection: sqlite3.Connection, where: str = "", *values: Any) -> list[FaqEntry]:
    """Return those that were not removed."""
    sql = f"SELECT key, status, data, sum FROM entries WHERE status <> 'removed' {where}"
    return [_entry(*row) for row in connection.execute(sql, values).fetchall()]


def _of_question(connection: sqlite3.Connection, question: str) -> FaqEntry | None:
    return next(iter(_entries(connection, "AND key = ?", storable(question_key(question)))), None)


def _insert(connection: sqlite3.Connection, entry: FaqEntry, by: str) -> FaqEntry:
    """The entry with the number that it got."""
    cursor = connection.execute(
        "INSERT INTO entries (number, key, status, revision, data, sum) "
        "VALUES (CASE WHEN ?1 NOT IN (SELECT number FROM entries) THEN nullif(?1, 0) END, ?2, ?3, 0, '', 0)",
        (entry.number, storable(question_key(entry.question)), entry.status),
    )
    entry = dataclasses.replace(entry, number=int(cursor.lastrowid or 0), changed_at=_now(), changed_by=by)
    _write(connection, entry)
    return entry


def _update(connection: sqlite3.Connection, old: FaqEntry, by: str, **fields: Any) -> FaqEntry:
    entry = dataclasses.replace(old, **fields, version=old.version + 1, changed_at=_now(), changed_by=by)
    _write(connection, entry)
    return entry


def _write(
    connection: sqlite3.Connection,
    entry: FaqEntry,
    *,
    status: str = "",
    is_change: bool = True,
    key: str | None = None,
) -> None:
    """Write an entry in its place, under another `key` if one is given; a change is a new revision."""
    if key is not None:
        connection.execute("UPDATE entries SET status = ?, key = ? WHERE number = ?", (status, key, entry.number))

    [key] = connection.execute("SELECT key FROM entries WHERE number = ?", (entry.number,)).fetchone()
    status, data = status or entry.status, storable(dumps(entry))
    revision = "(SELECT max(revision) + 1 FROM entries)" if is_change else "revision"
    connection.execute(
        f"UPDATE entries SET status = ?, data = ?, sum = ?, revision = {revision} WHERE number = ?",
        (status, data, checksum(key, status, data), entry.number),
    )


def _entry(first: Any, second: Any, data: str | bytes, stored_sum: int) -> FaqEntry:
    """The entry of a row, which was written with the two values before it. Raises IndexStateError for damage."""
    try:
        values = (value if isinstance(value, (str, bytes)) else str(value) for value in (first, second, data))
        if checksum(*values) == stored_sum:
            return loads(FaqEntry, restored(data))
    except ValueError:  # bytes that are no text
        pass
    raise IndexStateError(
        "An entry of the FAQ cache is damaged: it is not what was written. Restore faq.db from a copy."
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _existing(connection: sqlite3.Connection, number: int, version: int | None = None) -> FaqEntry:
    entry = next(iter(_entries(connection, "AND number = ?", number)), None)
    if entry is None:
        raise FaqError(f"The FAQ cache has no entry {number}. See them all: kraq faq list DIR")
    if version not in (None, entry.version):
        raise FaqConflictError(f"Entry {number} has changed meanwhile. Look at it again.")
    return entry


def question_key(question: str) -> str:
    """Equal for questions that differ in case, width, spaces or final punctuation alone."""
    plain = unicodedata.normalize("NFKC", question).casefold()
    return " ".join(plain.split()).rstrip(" ?!.。…")


def content_hash(document: Document) -> str:
    """Depends on what a reader sees of the document: title and text."""
    return content_id("source", document.title, document.text)


def is_stale(entry: FaqEntry, hashes: Mapping[str, str]) -> bool:
    """Whether a source document is gone, or was another one when the answer was given."""
    return any(
        source.document_id not in hashes or source.content_hash not in ("", hashes[source.document_id])
        for source in entry.sources
    )


def _checked(new: NewEntry) -> tuple[str, str, str]:
    question, answer = new.question.strip(), new.answer.strip()
    if not question_key(question):
        raise FaqError(f"{new.question!r} is no question. Every entry needs one.")
    _require_status(new.status)
    return question, answer, new.status if answer else "pending"


def _require_status(status: str) -> None:
    if status not in STATUSES:
        raise FaqError(f"There is no status {status!r}; there are: {', '.join(STATUSES)}.")
