"""Begins a catalogue with what people are likely to ask: an index's representative questions, answered offline."""

from dataclasses import dataclass
from functools import partial

import dspy

from kraq_dspy.asset.store.catalogue import Catalogue, NewEntry, question_key
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.catalogue.ask_all import AskReport, ask_all
from kraq_dspy.build.catalogue.sources import present_sources
from kraq_dspy.errors import IndexStateError
from kraq_dspy.models.lms.roles import LanguageModels, fill_in
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.qa_search.failures import failure_of
from kraq_dspy.programs.qa_search.program import is_answered
from kraq_dspy.records import AnswerEvidence
from kraq_dspy.steps.direct import Item

STAGE = "seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedReport(AskReport):
    """`known` are questions that the catalogue had, or that somebody took out of it; they were not asked.
    `unanswered` are in it now without an answer, pending."""

    questions: int
    known: int


def seed_answers(
    index: Index,
    catalogue: Catalogue,
    program: dspy.Module,
    models: LanguageModels,
    *,
    by: str,
    limit: int | None = None,
    approve: bool = False,
    progress: Progress | None = None,
) -> SeedReport:
    """Ask the program what the catalogue does not have yet of the index's KRAQ questions, at most `limit` of them.

    Answers wait for approval unless `approve`; they rest on the documents that the program saw. What was answered is
    kept at once, so an interrupted run loses nothing. Raises IndexStateError for an index without questions.
    """
    texts = {question.id: question.text for question in index.questions(source="kraq")}
    if not texts:
        raise IndexStateError(f"{str(index.path)!r} has no questions. Finish it first: kraq resume {index.path}")
    known = {*catalogue.known_keys(), ""}  # "" is the key of "?"
    new = {id: text for id, text in texts.items() if question_key(text) not in known}
    items = [Item(id, {"question": text}) for id, text in new.items()][:limit]

    def keep(question_id: str, prediction: dspy.Prediction) -> bool:
        entry = _entry(index, texts[question_id], prediction, approve)
        catalogue.add_all([entry], by=by)
        return bool(entry.answer)

    fill_in(program, models)
    report = partial(SeedReport, questions=len(texts), known=len(texts) - len(new))
    progress = progress or SilentProgress()
    return ask_all(STAGE, program, items, keep, total=len(items), models=models, progress=progress, report=report)


def _entry(index: Index, question: str, prediction: dspy.Prediction, approve: bool) -> NewEntry:
    answer = str(prediction.get("answer") or "").strip()
    hits = prediction.get("hits") or ()
    if not is_answered(prediction):
        evidence = tuple(AnswerEvidence.of(hit.chunk) for hit in hits)
        response = str(prediction.get("response") or answer)
        return NewEntry(
            question, status="pending", origin="kraq", given=response, evidence=evidence,
            failure=failure_of(prediction),
        )  # fmt: skip
    sources = present_sources(index, [hit.chunk.document_id for hit in hits])
    return NewEntry(question, answer, "approved" if approve else "pending", sources, "kraq")
