"""Reviews what waits in a catalogue: questions without an answer, answers nobody approved, answers gone stale."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dspy

from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.asset.store.catalogue import Catalogue
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.catalogue.ask_all import AskReport, ask_all
from kraq_dspy.build.catalogue.sources import document_hashes, present_sources, sources_of
from kraq_dspy.errors import CatalogueError
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress, Retriever, SilentProgress
from kraq_dspy.programs.qa_search.failures import class_of
from kraq_dspy.programs.qa_search.program import is_answered
from kraq_dspy.records import AnswerEvidence, CatalogueEntry, Chunk
from kraq_dspy.signatures import AnswerQuestion
from kraq_dspy.steps.direct import Item

STAGE = "answer"
PASSAGES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersReport(AskReport):
    """What a model made of the entries it was asked; `unanswered` stay as they were."""

    model: str
    asked: int


@dataclass(frozen=True, slots=True)
class ReviewFilter:
    """Entries that wait, of a status ("pending" or "stale") and of a class of failures; at most `limit` of them."""

    status: str = "pending"
    limit: int | None = None
    failure: str = ""


def waiting(catalogue: Catalogue, status: str | None = None, failure: str = "") -> list[CatalogueEntry]:
    """Pending entries, then stale ones, or one of both, of a class of failures; first what failed most often."""
    entries = [entry for each in ([status] if status else ["pending", "stale"]) for entry in catalogue.entries(each)]
    entries = [entry for entry in entries if failure in ("", class_of(entry))]
    return sorted(entries, key=lambda entry: (entry.status, -entry.asked, entry.number))


def approve(index: Index, catalogue: Catalogue, number: int, *, by: str, version: int | None = None) -> CatalogueEntry:
    """Served from now on. Its sources are the documents as they are now; those that are gone no longer count.

    Nothing changes where it is approved and its sources are up to date. Raises CatalogueError for an entry that has no
    answer, or that is not there, CatalogueConflictError for one that is not of this `version` any more.
    """
    entry = catalogue.get(number)
    sources = present_sources(index, [source.document_id for source in entry.sources])
    if (entry.status, entry.sources) == ("approved", sources) and version in (None, entry.version):
        return entry
    return catalogue.change(number, by=by, version=version, status="approved", sources=sources)


def answer(
    index: Index,
    catalogue: Catalogue,
    number: int,
    text: str,
    *,
    by: str,
    document_ids: Sequence[str] | None = None,
    approved: bool = True,
    version: int | None = None,
) -> CatalogueEntry:
    """Give an entry an answer, resting on these documents; on those it had, as they are now, where None is given.

    Raises CatalogueError for an empty answer, UnknownRecordError for a document that is not there,
    CatalogueConflictError for an entry that is not of this `version` any more.
    """
    if not text.strip():
        raise CatalogueError("The answer is empty. Say what people are to be told, or leave the entry as it is.")
    entry = catalogue.get(number)
    fields: dict[str, Any] = {"answer": text.strip(), "status": "approved" if approved else "pending"}
    if document_ids is None:
        fields["sources"] = present_sources(index, [source.document_id for source in entry.sources])
    else:
        fields["sources"] = sources_of(index, document_ids)
    return catalogue.change(number, by=by, version=version, **fields)


def evidence_for(index: Index, entry: CatalogueEntry, count: int = 3) -> list[AnswerEvidence]:
    """What an answer can be judged by: the passages that a program saw, else those of the sources that share the most
    words with question and answer."""
    if entry.evidence:
        return list(entry.evidence)
    answer_words = _words(f"{entry.question} {entry.answer}")
    chunks = [chunk for one in entry.sources for chunk in index.all(Chunk, document_id=one.document_id)]
    chunks.sort(key=lambda chunk: -len(answer_words & _words(chunk.passage)))
    return [AnswerEvidence.of(chunk) for chunk in chunks[:count]]


def source_states(index: Index, entry: CatalogueEntry) -> dict[str, str]:
    """For each document that the answer rests on: "as it was", "changed" or "gone"."""
    hashes = document_hashes(index, [one.document_id for one in entry.sources])
    return {
        one.document_id: "gone"
        if one.document_id not in hashes
        else "as it was"
        if one.content_hash in ("", hashes[one.document_id])
        else "changed"
        for one in entry.sources
    }


def answer_with_model(
    index: Index,
    catalogue: Catalogue,
    models: LanguageModels,
    retriever: Callable[[], Retriever],
    which: ReviewFilter | None = None,
    *,
    by: str | None = None,
    approve: bool = False,
    progress: Progress | None = None,
) -> AnswersReport:
    """Pending questions without an answer, or stale ones, as `which` says, answered by the role "teacher", or
    "answerer" where no teacher is named.

    It sees the passages that a program had before it, where they are still in the index, else what the retriever
    finds, which is made only then. Answers wait for approval unless `approve`; each is kept at once.
    """
    lm = models["teacher" if models.has_own("teacher") else "answerer"]
    which = which or ReviewFilter()
    listed = [one for one in waiting(catalogue, which.status, which.failure) if one.status == "stale" or not one.answer]
    entries = {str(entry.number): entry for entry in listed[: which.limit]}
    chunks = set(index.ids(Chunk))
    find: list[Retriever] = []

    def passages(entry: CatalogueEntry) -> list[AnswerEvidence]:
        evidence = [one for one in entry.evidence if one.chunk_id in chunks]
        if evidence and entry.status == "pending":
            return evidence
        if not find:
            find.append(retriever())
        return [AnswerEvidence.of(hit.chunk) for hit in find[0](entry.question, PASSAGES)]

    seen_by: dict[str, list[AnswerEvidence]] = {}

    def items() -> Iterator[Item]:
        """Passages are looked for as places become free, so that the first answer does not wait for the last."""
        for number, entry in entries.items():
            seen_by[number] = passages(entry)
            yield Item(number, {"question": entry.question, "passages": [one.text for one in seen_by[number]]})

    def keep(number: str, prediction: dspy.Prediction) -> bool:
        text = str(prediction.answer or "").strip()
        if answered := is_answered(prediction):
            ids = document_hashes(index, {one.document_id for one in seen_by[number]})
            written = by or str(lm.model)
            answer(index, catalogue, int(number), text, by=written, document_ids=sorted(ids), approved=approve)
        return answered

    step, progress = FittingPredict(AnswerQuestion, shorten="passages"), progress or SilentProgress()
    step.lm = lm
    report = partial(AnswersReport, model=str(lm.model), asked=len(entries))
    return ask_all(STAGE, step, items(), keep, total=len(entries), models=models, progress=progress, report=report)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
