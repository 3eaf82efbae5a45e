"""What waits for review in a catalogue: questions without an answer, answers nobody approved, answers gone stale."""

from collections.abc import Sequence
from typing import Any

from kraq_dspy.errors import CatalogueError
from kraq_dspy.records import CatalogueEntry
from kraq_dspy.stores.catalogue import Catalogue
from kraq_dspy.stores.catalogue_sources import present_sources, sources_of
from kraq_dspy.stores.index import Index


def approve(index: Index, catalogue: Catalogue, number: int, *, by: str) -> CatalogueEntry:
    """Served from now on. Its sources are the documents as they are now; those that are gone no longer count.

    Nothing changes where it is approved and its sources are up to date. Raises CatalogueError for an entry that has no
    answer, or that is not there.
    """
    entry = catalogue.get(number)
    sources = present_sources(index, [source.document_id for source in entry.sources])
    if (entry.status, entry.sources) == ("approved", sources):
        return entry
    return catalogue.change(number, by=by, action="approved", status="approved", sources=sources)


def answer(
    index: Index,
    catalogue: Catalogue,
    number: int,
    text: str,
    *,
    by: str,
    document_ids: Sequence[str] | None = None,
    approved: bool = True,
) -> CatalogueEntry:
    """Give an entry an answer, resting on these documents; on those it had, as they are now, where None is given.

    Raises CatalogueError for an empty answer, UnknownRecordError for a document that is not there.
    """
    if not text.strip():
        raise CatalogueError("The answer is empty. Say what people are to be told, or leave the entry as it is.")
    entry = catalogue.get(number)
    fields: dict[str, Any] = {"answer": text.strip(), "status": "approved" if approved else "pending"}
    if document_ids is None:
        fields["sources"] = present_sources(index, [source.document_id for source in entry.sources])
    else:
        fields["sources"] = sources_of(index, document_ids)
    return catalogue.change(number, by=by, action="edited" if entry.answer else "answered", **fields)
