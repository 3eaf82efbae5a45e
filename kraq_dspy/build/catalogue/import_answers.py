"""Takes a file of questions and answers into the catalogue of an index."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.corpus.formats.rows import BadRow
from kraq_dspy.asset.store.catalogue import AddReport, Catalogue, NewEntry
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.catalogue.files import ReadEntry, read_entries
from kraq_dspy.build.catalogue.sources import document_hashes, flag_stale
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.records import AnswerSource

STAGE = "import"


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
    index: Index,
    catalogue: Catalogue,
    path: Path,
    *,
    by: str,
    replace: bool = False,
    pending: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """The good rows in one transaction; the others are reported and left. With `pending` nothing is approved.

    A source without a hash is a document as the index has it now, which must exist. Raises CatalogueError for a file
    that cannot be read.
    """
    progress = progress or SilentProgress()
    progress.start(STAGE, None)
    refused: list[str] = []
    read: list[ReadEntry] = []
    for row in read_entries(path):
        progress.advance(STAGE)
        if isinstance(row, BadRow):
            refused.append(row.reason)
        else:
            read.append(row)
    hashes = document_hashes(index, {source.document_id for row in read for source in row.entry.sources})
    entries = []
    for row in read:
        unknown = [
            one.document_id for one in row.entry.sources if not one.content_hash and one.document_id not in hashes
        ]
        if unknown:
            refused.append(f"{row.where}: the index has no document {unknown[0]!r}.")
        else:
            entries.append(_prepared(row.entry, hashes, pending))
    report = catalogue.add_all(entries, by=by, replace=replace)
    stale = flag_stale(index)
    progress.finish(STAGE)
    return ImportReport(report, tuple(refused), tuple(stale))


def _prepared(entry: NewEntry, hashes: dict[str, str], pending: bool) -> NewEntry:
    sources = tuple(AnswerSource(one.document_id, one.content_hash or hashes[one.document_id]) for one in entry.sources)
    return dataclasses.replace(entry, sources=sources, status="pending" if pending else entry.status)
