"""Reads, imports and writes entries of an FAQ cache as files that people edit: CSV, TSV, JSON lines; one entry a
row."""

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kraq_dspy._internal.spreadsheets import cell_of, text_of
from kraq_dspy.asset.corpus.formats.readers import find_reader
from kraq_dspy.asset.corpus.formats.rows import ReadSettings, Row
from kraq_dspy.asset.store.faq import STATUSES, AddReport, FaqCache, NewEntry, question_key
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import FaqError
from kraq_dspy.indexing.faq.sources import document_hashes, flag_stale
from kraq_dspy.programs.qa_search.program import FAILURES
from kraq_dspy.records import AnswerSource, FaqEntry

FORMATS = ("csv", "jsonl")
COLUMNS = ("number", "question", "answer", "status", "sources", "origin", "given", "asked", "failure", "evidence")
ORIGINS = ("person", "import", "failed", "answered", "kraq", "synthetic")

ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".jsonl.gz")

_READ = ReadSettings(text_column="question", title_column="", id_column="", way_out="Rename the one that holds them.")


def read_entries(path: Path) -> Iterator[NewEntry | str]:
    """The rows of a file, by its ending; for one that is no entry the reason, which says where it stands: "Line 3", or
    "Row 3" below the names of the columns.

    Needs the column "question"; knows "answer", "status", "sources" (document ids: a JSON list, or separated by
    semicolons) and what an export has besides, apart from the number, which the FAQ cache gives. Other columns are left
    out. Raises FaqError for a file that cannot be read at all.
    """
    name = path.name.lower()
    reader = find_reader(name) if name.endswith(ENDINGS) else None
    if reader is None:
        raise FaqError(f"{str(path)!r}: entries are read from files that end in {', '.join(ENDINGS)}.")

    place = "Row" if name.endswith(ENDINGS[:3]) else "Line"
    try:
        for row in reader(path, _READ):
            if isinstance(row, Row):
                yield _entry(_plain(row) if name.endswith(ENDINGS[:2]) else row, f"{place} {row.key}")
            elif row.key:
                yield row.reason
            else:
                raise FaqError(f"{str(path)!r}: {row.reason}")
    except OSError as error:
        raise FaqError(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def _plain(row: Row) -> Row:
    cells = {name: _without_apostrophe(value) for name, value in row.metadata.items()}
    return dataclasses.replace(row, text=_without_apostrophe(row.text), metadata=cells)


def entries_text(entries: Iterable[FaqEntry], form: str) -> str:
    """All that `read_entries` reads again, and the number. `form` is one of FORMATS.

    Lone surrogates, which no UTF-8 file holds, become U+FFFD.
    """
    rows = [{name: fields[name] for name in COLUMNS} for fields in map(asdict, entries)]
    out = io.StringIO()
    if form == "jsonl":
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue().encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _cell(value: Any) -> Any:
    cell = json.dumps(value, ensure_ascii=False) if isinstance(value, tuple) and value else value or ""
    return cell_of(cell) if isinstance(cell, str) else cell


def _without_apostrophe(value: Any) -> Any:
    return text_of(value) if isinstance(value, str) else value


def _entry(row: Row, where: str) -> NewEntry | str:
    """Make an entry of the columns that are not empty, or say why that cannot be; sources are
    document ids, or objects with an id and a hash."""
    given = {}
    for name in COLUMNS[2:]:
        value = row.metadata.get(name)
        if value not in (None, ""):
            given[name] = value

    try:
        return _validated(row.text, given)
    except ValidationError as error:
        fault = error.errors()[0]
        column = str(fault["loc"][0])
        return f"{where}: {column} is {given.get(column)!r:.80}: {fault['msg']}."
    except ValueError as error:
        return f"{where}: {error}."


def _validated(question: str, given: Mapping[str, Any]) -> NewEntry:
    """Raises ValueError for a value that there is not, ValidationError for one of a wrong kind."""
    if not question_key(question):
        raise ValueError(f"{question!r} is no question")

    fields: dict[str, Any] = {
        "status": "approved",
        "origin": "import",
        **given,
        "question": question,
    }
    choices = {"status": STATUSES, "origin": ORIGINS, "failure": ("", *FAILURES)}
    for name, known in choices.items():
        value = fields.get(name, "")
        if value not in known:
            raise ValueError(f"there is no {name} {value!r}; there are: {', '.join(known)}")

    sources = _listed(str(given.get("sources", "")), "sources")
    evidence = _listed(str(given.get("evidence", "")), "evidence")
    fields["evidence"] = evidence
    fields["sources"] = [{"document_id": source} if isinstance(source, str) else source for source in sources]
    return TypeAdapter(NewEntry).validate_python(fields)


def _listed(text: str, what: str) -> list[Any]:
    """A JSON list, or texts separated by semicolons."""
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(";") if part.strip()]
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, list):
        raise ValueError(f"the column {what!r} holds {text[:60]!r}, which is no list")
    return value


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of the rows; `refused` says why and where. `stale` are numbers of entries whose documents are not
    those that the file was made with."""

    entries: AddReport
    refused: tuple[str, ...] = ()
    stale: tuple[int, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.refused and not self.entries.conflicts


def import_answers(
    index: Index, faq: FaqCache, path: Path, *, by: str, replace: bool = False, pending: bool = False
) -> ImportReport:
    """The good rows in one transaction; the others are reported and left. With `pending` nothing is approved.

    A source without a hash is a document as the index has it now, which must exist. Raises FaqError for a file
    that cannot be read.
    """
    rows = list(read_entries(path))
    refused = [row for row in rows if isinstance(row, str)]
    read = [row for row in rows if isinstance(row, NewEntry)]
    hashes = document_hashes(index, {source.document_id for entry in read for source in entry.sources})
    entries = []
    for entry in read:
        current = [
            AnswerSource(source.document_id, source.content_hash or hashes.get(source.document_id, ""))
            for source in entry.sources
        ]
        if unknown := [source.document_id for source in current if not source.content_hash]:
            refused.append(f"{entry.question!r}: the index has no document {unknown[0]!r}.")
            continue
        status = "pending" if pending else entry.status
        entries.append(dataclasses.replace(entry, sources=tuple(current), status=status))

    report = faq.add_all(entries, by=by, replace=replace)
    return ImportReport(report, tuple(refused), tuple(flag_stale(index)))
