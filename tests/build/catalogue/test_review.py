"""Entries wait for review in an order, are judged by their evidence, and are answered by a model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM

from kraq_dspy.asset.store.catalogue import Catalogue, NewEntry, content_hash
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.catalogue.review import (
    ReviewFilter,
    answer,
    answer_with_model,
    approve,
    evidence_for,
    source_states,
    waiting,
)
from kraq_dspy.errors import CatalogueError
from kraq_dspy.records import AnswerEvidence, AnswerSource, Chunk, Document, Hit
from kraq_dspy.settings import Settings
from tests.build.scripted import Models

MILL = Document("d1", "", "The mill stands near the tower. Ann built it.")
HARBOUR = Document("d2", "", "The harbour is deep.")
CHUNKS = [
    Chunk("c1", "d1", 0, 0, 31, "The mill stands near the tower.", 8),
    Chunk("c2", "d1", 1, 32, 45, "Ann built it.", 4),
    Chunk("c3", "d2", 0, 0, 20, HARBOUR.text, 4),
]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.create(tmp_path / "i.kraq", Settings(), encoder_name="none", encoder_dimension=2) as index:
        index.add([MILL, HARBOUR, *CHUNKS])
        yield index


class Finds:
    """A retriever that always finds the harbour; counts what it was asked."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def __call__(self, question: str, k: int, **options: Any) -> list[Hit]:
        self.questions.append(question)
        return [Hit(CHUNKS[2], 1.0, question)]


def test_pending_entries_come_first_and_what_fails_most_often_before_the_rest(catalogue: Catalogue) -> None:
    catalogue.add(NewEntry("Stale?", "Yes.", "stale"), by="ann")
    catalogue.collect("Once?", "", [])
    catalogue.collect("Twice?", "", [])
    catalogue.collect("Twice?", "", [])
    catalogue.add(NewEntry("Fine?", "Yes."), by="ann")
    assert [entry.question for entry in waiting(catalogue)] == ["Twice?", "Once?", "Stale?"]
    assert [entry.question for entry in waiting(catalogue, "stale")] == ["Stale?"]


def test_an_answer_is_judged_by_what_was_seen_or_by_what_its_sources_say_of_it(
    index: Index, catalogue: Catalogue
) -> None:
    evidence = AnswerEvidence("c3", "d2", "The harbour is deep.")
    failed = catalogue.collect("Who built it?", "", [evidence])
    added = catalogue.add(NewEntry("Who built what?", "Ann built a mill.", sources=(AnswerSource("d1"),)), by="ann")
    assert evidence_for(index, failed) == [evidence]
    assert [one.chunk_id for one in evidence_for(index, added, count=1)] == ["c2"]


def test_approval_takes_the_documents_as_they_are_now(index: Index, catalogue: Catalogue) -> None:
    sources = (AnswerSource("d1", "old"), AnswerSource("gone", "x"), AnswerSource("d2", content_hash(HARBOUR)))
    entry = catalogue.add(NewEntry("Who?", "Ann.", "stale", sources), by="ann")
    assert source_states(index, entry) == {"d1": "changed", "gone": "gone", "d2": "as it was"}
    approved = approve(index, catalogue, 1, by="bob")
    assert approved.sources == (AnswerSource("d1", content_hash(MILL)), sources[2])
    assert approve(index, catalogue, 1, by="bob").version == approved.version  # nothing left to do
    with pytest.raises(CatalogueError, match="answer is empty"):
        answer(index, catalogue, 1, " ", by="bob")


def test_a_model_sees_what_the_program_saw_and_else_what_is_found(index: Index, catalogue: Catalogue) -> None:
    catalogue.collect("Who built it?", "I do not know", [AnswerEvidence("c2", "d1", "Ann built it.")])
    catalogue.collect("How deep?", "", [AnswerEvidence("gone", "d9", "An old passage.")])
    catalogue.add(NewEntry("Ready?", "Yes.", "pending"), by="ann")
    find = Finds()
    lm = DummyLM({"Ann built it.": {"answer": "Ann."}, "The harbour is deep.": {"answer": "I do not know."}})
    models = Models(lm, "teacher")
    report = answer_with_model(index, catalogue, models, lambda: find, by="teacher")
    assert (report.asked, report.answered, report.unanswered, models.roles) == (2, 1, 1, ["teacher"])
    assert find.questions == ["How deep?"]
    known, unknown, ready = catalogue.entries()
    assert (known.answer, known.status, known.sources) == ("Ann.", "pending", (AnswerSource("d1", content_hash(MILL)),))
    assert (unknown.answer, unknown.status) == ("", "pending")
    assert ready.version == 1


def test_without_a_teacher_the_answerer_answers_and_a_failure_costs_its_entry(
    index: Index, catalogue: Catalogue
) -> None:
    catalogue.collect("How deep?", "", [])
    catalogue.collect("How wide?", "", [])
    unreadable = {"other": "x"}
    lm = DummyLM({"How deep?": {"answer": "Deep."}, "That cannot be read": unreadable, "How wide?": unreadable})
    models = Models(lm)
    report = answer_with_model(index, catalogue, models, Finds, approve=True)
    assert (report.answered, len(report.failures), models.roles) == (1, 1, ["answerer"])
    assert [entry.question for entry in catalogue.entries("approved")] == ["How deep?"]


def test_stale_answers_are_made_anew_from_what_is_there_now(index: Index, catalogue: Catalogue) -> None:
    catalogue.add(NewEntry("How deep?", "Shallow.", "stale", evidence=(AnswerEvidence("c1", "d1", "x"),)), by="ann")
    models = Models(DummyLM({"The harbour is deep.": {"answer": "Deep."}}))
    answer_with_model(index, catalogue, models, Finds, ReviewFilter("stale"))
    [entry] = catalogue.entries()
    assert (entry.answer, entry.status, [one.document_id for one in entry.sources]) == ("Deep.", "pending", ["d2"])
    assert entry.version == 2
