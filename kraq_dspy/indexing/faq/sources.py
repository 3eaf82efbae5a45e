"""Compares the documents that prepared answers rest on with those that the index has now."""

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from kraq_dspy.asset.store.faq import FAQ, FaqCache, content_hash, is_stale
from kraq_dspy.errors import UnknownRecordError
from kraq_dspy.records import AnswerSource, Document, FaqEntry

if TYPE_CHECKING:
    from kraq_dspy.asset.store.index import Index


def open_faq(index_dir: Path, *, write: bool = False) -> FaqCache | None:
    """The FAQ cache of an index; None if there is none, and then none is made."""
    path = index_dir / FAQ
    return FaqCache(path, write=write) if path.is_file() else None


def opened_faq(index_dir: Path, *, write: bool = False) -> AbstractContextManager[FaqCache | None]:
    """The FAQ cache as `open_faq` gives it, closed at the end of the block."""
    return open_faq(index_dir, write=write) or nullcontext()


def count_answers(index_dir: Path) -> dict[str, int] | None:
    """The entries of an index's FAQ cache by status; None if there is none. Raises IndexStateError for damage."""
    with opened_faq(index_dir) as faq:
        return faq.counts() if faq else None


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
    with opened_faq(index.path) as faq:
        approved = faq.entries("approved") if faq else []
    hashes = _hashes(index, approved)
    return [entry.number for entry in approved if is_stale(entry, hashes)]


def flag_stale(index: "Index") -> list[int]:
    """Mark those entries as stale; nothing happens if there is no FAQ cache. Returns their numbers."""
    with opened_faq(index.path, write=True) as faq:
        return faq.flag_stale(_hashes(index, faq.entries("approved"))) if faq else []


def _hashes(index: "Index", entries: Iterable[FaqEntry]) -> dict[str, str]:
    return document_hashes(index, {source.document_id for entry in entries for source in entry.sources})
