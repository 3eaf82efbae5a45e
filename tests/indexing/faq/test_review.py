"""Entries wait for review in an order, and are judged by their evidence."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store.faq import NewEntry, content_hash
from kraq_dspy.errors import FaqError
from kraq_dspy.extend import FaqCache
from kraq_dspy.indexing.faq.evidence import evidence_for
from kraq_dspy.indexing.faq.review import answer, approve, source_states, waiting
from kraq_dspy.records import AnswerEvidence, AnswerSource, Chunk, Document
from kraq_dspy.settings import Settings

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


def test_pending_entries_come_first_and_what_fails_most_often_before_the_rest(faq: FaqCache) -> None:
    faq.add(NewEntry("Stale?", "Yes.", "stale"), by="ann")
    faq.collect("Once?", "", [])
    faq.collect("Twice?", "", [])
    faq.collect("Twice?", "", [])
    faq.add(NewEntry("Fine?", "Yes."), by="ann")
    assert [entry.question for entry in waiting(faq)] == ["Twice?", "Once?", "Stale?"]


def test_an_answer_is_judged_by_what_was_seen_or_by_what_its_sources_say_of_it(index: Index, faq: FaqCache) -> None:
    evidence = AnswerEvidence("c3", "d2", "The harbour is deep.")
    failed = faq.collect("Who built it?", "", [evidence])
    added = faq.add(NewEntry("Who built what?", "Ann built a mill.", sources=(AnswerSource("d1"),)), by="ann")
    assert evidence_for(index, failed) == [evidence]
    assert [one.chunk_id for one in evidence_for(index, added, count=1)] == ["c2"]


def test_approval_takes_the_documents_as_they_are_now(index: Index, faq: FaqCache) -> None:
    sources = (AnswerSource("d1", "old"), AnswerSource("gone", "x"), AnswerSource("d2", content_hash(HARBOUR)))
    entry = faq.add(NewEntry("Who?", "Ann.", "stale", sources), by="ann")
    assert source_states(index, entry) == {"d1": "changed", "gone": "gone", "d2": "as it was"}
    approved = approve(index, faq, 1, by="bob")
    assert approved.sources == (AnswerSource("d1", content_hash(MILL)), sources[2])
    assert approve(index, faq, 1, by="bob").version == approved.version  # nothing left to do
    with pytest.raises(FaqError, match="answer is empty"):
        answer(index, faq, 1, " ", by="bob")
