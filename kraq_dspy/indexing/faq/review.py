"""Reviews what waits in an FAQ cache: questions without an answer, answers nobody approved, answers gone stale."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kraq_dspy.asset.store.faq import FaqCache
from kraq_dspy.errors import FaqError
from kraq_dspy.indexing.faq.sources import document_hashes, present_sources, sources_of
from kraq_dspy.records import FaqEntry

if TYPE_CHECKING:
    from kraq_dspy.asset.store.index import Index


def waiting(faq: FaqCache) -> list[FaqEntry]:
    """Pending entries, then stale ones; first what failed most often."""
    entries = [*faq.entries("pending"), *faq.entries("stale")]
    return sorted(entries, key=lambda entry: (entry.status, -entry.asked, entry.number))


def approve(index: "Index", faq: FaqCache, number: int, *, by: str, version: int | None = None) -> FaqEntry:
    """Served from now on. Its sources are the documents as they are now; those that are gone no longer count.

    Nothing changes if it is approved and its sources are up to date. Raises FaqError for an entry that has no
    answer, or that is not there, FaqConflictError for one that is not of this `version` any more.
    """
    entry = faq.get(number)
    sources = present_sources(index, [source.document_id for source in entry.sources])
    if (entry.status, entry.sources) == ("approved", sources) and version in (None, entry.version):
        return entry
    return faq.change(number, by=by, version=version, status="approved", sources=sources)


def answer(
    index: "Index",
    faq: FaqCache,
    number: int,
    text: str,
    *,
    by: str,
    document_ids: Sequence[str] | None = None,
    approved: bool = True,
    version: int | None = None,
) -> FaqEntry:
    """Give an entry an answer, resting on these documents; on those it had, as they are now, where None is given.

    Raises FaqError for an empty answer, UnknownRecordError for a document that is not there,
    FaqConflictError for an entry that is not of this `version` any more.
    """
    if not text.strip():
        raise FaqError("The answer is empty. Say what people should read, or leave the entry as it is.")

    entry = faq.get(number)
    fields: dict[str, Any] = {"answer": text.strip(), "status": "approved" if approved else "pending"}
    if document_ids is None:
        fields["sources"] = present_sources(index, [source.document_id for source in entry.sources])
    else:
        fields["sources"] = sources_of(index, document_ids)
    return faq.change(number, by=by, version=version, **fields)


def source_states(index: "Index", entry: FaqEntry) -> dict[str, str]:
    """Tell for each document that the answer rests on: "as it was", "changed" or "gone"."""
    hashes = document_hashes(index, [source.document_id for source in entry.sources])
    return {
        source.document_id: "gone"
        if source.document_id not in hashes
        else "as it was"
        if source.content_hash in ("", hashes[source.document_id])
        else "changed"
        for source in entry.sources
    }
