"""Compares the documents that prepared answers rest on with those that the index has now."""

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from kraq_dspy.asset.store.catalogue import CATALOGUE, Catalogue, content_hash, is_stale
from kraq_dspy.errors import UnknownRecordError
from kraq_dspy.records import AnswerSource, CatalogueEntry, Document

if TYPE_CHECKING:
    from kraq_dspy.asset.store.index import Index


def open_catalogue(index_dir: Path, *, write: bool = False) -> Catalogue | None:
    """The catalogue of an index; None if there is none, and then none is made."""
    path = index_dir / CATALOGUE
    return Catalogue(path, write=write) if path.is_file() else None


def opened_catalogue(index_dir: Path, *, write: bool = False) -> AbstractContextManager[Catalogue | None]:
    """The catalogue as `open_catalogue` gives it, closed at the end of the block."""
    return open_catalogue(index_dir, write=write) or nullcontext()


def count_answers(index_dir: Path) -> dict[str, int] | None:
    """The entries of an index's catalogue by status; None if there is none. Raises IndexStateError for damage."""
    with opened_catalogue(index_dir) as catalogue:
        return catalogue.counts() if catalogue else None


def document_hashes(index: "Index", document_ids: Collection[str]) -> dict[str, str]:
    """Hashes of those documents that exist, by id."""
    known_ids = sorted(index.known(Document, set(document_ids)))
    return {document.id: content_hash(document) for document in index.get(Document, known_ids)}


def sources_of(index: "Index", document_ids: Iterable[str]) -> tuple[AnswerSource, ...]:
    """The documents as they are now, each once. Raises UnknownRecordError for one that the index does not have."""
    ids = list(dict.fromkeys(document_ids))
    hashes = document_hashes(index, ids)
    if unknown := [document_id for document_id in ids if document_id not in hashes]:
        raise UnknownRecordError(
            f"{str(index.path)!r} has no document {unknown[0]!r}"
            + (f" and {len(unknown) - 1} more of those" if len(unknown) > 1 else "")
            + f". Its ids: kraq export {index.path} --format jsonl, file documents.jsonl."
        )
    return tuple(AnswerSource(document_id, hashes[document_id]) for document_id in ids)


def present_sources(index: "Index", document_ids: Iterable[str]) -> tuple[AnswerSource, ...]:
    """Do as `sources_of` does, without those that are gone."""
    ids = list(dict.fromkeys(document_ids))
    hashes = document_hashes(index, ids)
    return tuple(AnswerSource(each, hashes[each]) for each in ids if each in hashes)


def overdue(index: "Index") -> list[int]:
    """Numbers of the approved entries whose documents have changed or are gone: they must not be served."""
    with opened_catalogue(index.path) as catalogue:
        approved = catalogue.entries("approved") if catalogue else []
    hashes = _hashes(index, approved)
    return [entry.number for entry in approved if is_stale(entry, hashes)]


def flag_stale(index: "Index") -> list[int]:
    """Mark those entries as stale; nothing happens if there is no catalogue. Returns their numbers."""
    with opened_catalogue(index.path, write=True) as catalogue:
        return catalogue.flag_stale(_hashes(index, catalogue.entries("approved"))) if catalogue else []


def _hashes(index: "Index", entries: Iterable[CatalogueEntry]) -> dict[str, str]:
    return document_hashes(index, {source.document_id for entry in entries for source in entry.sources})
