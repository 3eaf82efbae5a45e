"""Shows the catalogue of prepared answers and, where the server may edit, does what a reviewer decides."""

from dataclasses import asdict
from typing import Any

from kraq_dspy.apps.serve.errors import RequestError, not_found
from kraq_dspy.apps.serve.listing import page_of
from kraq_dspy.apps.serve.requests import CatalogueQuery, ReviewRequest
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.asset.store.catalogue import Catalogue
from kraq_dspy.build.catalogue.review import answer, approve, evidence_for, source_states, waiting
from kraq_dspy.errors import CatalogueConflictError, CatalogueError, UnknownRecordError
from kraq_dspy.records import CatalogueEntry

REVIEWER = "kraq explore"
"""Who the history names; a page knows no names."""


def entries(served: ServedIndex, query: CatalogueQuery) -> dict[str, Any]:
    """Some entries; what waits comes in the order in which it is worth a look."""
    catalogue = served.catalogue
    if catalogue is None:
        return {"exists": False, "counts": {}, "total": 0, "offset": 0, "items": []}
    listed = waiting(catalogue) if query.status == "waiting" else catalogue.entries(query.status)
    return {"exists": True, "counts": catalogue.counts(), **page_of(listed, query, _brief)}


def entry(served: ServedIndex, number: int) -> dict[str, Any]:
    """An entry with what its answer can be judged by, and its versions."""
    return _whole(served, _catalogue(served), number)


def review(served: ServedIndex, number: int, decision: ReviewRequest) -> dict[str, Any]:
    """The entry as it is then. Raises RequestError where the server may not edit, where somebody changed the entry
    meanwhile, and where an answer lacks or rests on a document that is not there."""
    if not served.edit:
        raise RequestError(403, "read_only", "This server is read-only; start it with --edit to review.")
    catalogue = _catalogue(served)
    _existing(catalogue, number)
    here: Any = {"by": REVIEWER, "version": decision.version}
    try:
        if decision.action == "reject":
            catalogue.remove(number, **here)
            return {"number": number, "status": "removed"}
        if decision.action == "edit":
            answer(served.index, catalogue, number, decision.answer or "", document_ids=decision.document_ids, **here)
        else:
            approve(served.index, catalogue, number, **here)
    except CatalogueConflictError as error:
        raise RequestError(409, "changed", str(error)) from None
    except UnknownRecordError:
        raise RequestError(422, "no_such_document", "The index has no document of one of these ids.") from None
    return _whole(served, catalogue, number)


def _catalogue(served: ServedIndex) -> Catalogue:
    if served.catalogue is None:
        raise RequestError(404, "no_catalogue", "This index has no catalogue of prepared answers yet.")
    return served.catalogue


def _existing(catalogue: Catalogue, number: int) -> CatalogueEntry:
    try:
        return catalogue.get(number)
    except (CatalogueError, OverflowError):  # a number too large for the table is not there
        raise not_found("entry", str(number)) from None


def _brief(entry: CatalogueEntry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in ("number", "question", "status", "origin", "asked", "version")} | {
        "answer": entry.answer[:300]
    }


def _whole(served: ServedIndex, catalogue: Catalogue, number: int) -> dict[str, Any]:
    entry = _existing(catalogue, number)
    titles = served.atlas.titles
    return {
        **asdict(entry),
        "evidence": [asdict(each) for each in evidence_for(served.index, entry, 5)],
        "sources": [
            {"document_id": each, "title": titles.get(each, each), "state": state}
            for each, state in source_states(served.index, entry).items()
        ],
        "history": [
            {
                "action": each.action,
                "version": each.entry.version,
                "at": each.entry.changed_at,
                "by": each.entry.changed_by,
            }
            for each in catalogue.history(number)
        ],
    }
