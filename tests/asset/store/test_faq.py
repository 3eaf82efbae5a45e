"""Tests an FAQ cache on a real disk: numbers, versions, conflicts, collected failures, sources that change."""

import threading
from pathlib import Path

import pytest

from kraq_dspy.asset.store.database import Database
from kraq_dspy.asset.store.faq import NewEntry, content_hash, question_key
from kraq_dspy.errors import FaqConflictError, FaqError, IndexStateError
from kraq_dspy.extend import FaqCache
from kraq_dspy.records import AnswerEvidence, AnswerSource, Document

PRICE = NewEntry("What does it cost?", "Ten euros.")


@pytest.fixture
def faq(tmp_path: Path) -> FaqCache:
    return FaqCache(tmp_path / "faq.db")


def test_entries_have_numbers_that_are_never_given_again(faq: FaqCache) -> None:
    first = faq.add(PRICE, by="ann")
    second = faq.add(NewEntry("Who sells it?", "We do."), by="ann")
    faq.remove(second.number, by="bob")
    third = faq.add(NewEntry("Where?", "Here."), by="ann")
    assert (first.number, second.number, third.number) == (1, 2, 3)
    assert [entry.number for entry in faq.entries()] == [1, 3]


def test_it_is_read_again_as_it_was_written(faq: FaqCache, tmp_path: Path) -> None:
    new = NewEntry("什么?", "\udcff", "pending", (AnswerSource("d1", "ab"),), "import")
    entry = faq.add(new, by="ann")
    faq.close()
    assert FaqCache(tmp_path / "faq.db", write=False).entries() == [entry]
    assert (entry.answer, entry.sources, entry.origin, entry.status) == ("\udcff", new.sources, "import", "pending")


def test_the_same_question_with_another_answer_is_refused_with_both_named(faq: FaqCache) -> None:
    faq.add(PRICE, by="ann")
    with pytest.raises(FaqConflictError, match=r"Entry 1 .*'Ten euros\.', not with 'Nine\.'"):
        faq.add(NewEntry("what does it  cost", "Nine."), by="bob")
    assert faq.get(1).answer == "Ten euros."


def test_replacing_an_answer_makes_a_version(faq: FaqCache) -> None:
    faq.add(PRICE, by="ann")
    replaced = faq.add(NewEntry(PRICE.question, "Nine."), by="bob", replace=True)
    assert (replaced.number, replaced.version, replaced.answer, replaced.changed_by) == (1, 2, "Nine.", "bob")


def test_adding_the_same_entry_twice_changes_nothing(faq: FaqCache) -> None:
    faq.add(PRICE, by="ann")
    before = faq.changed_since(-1)[0]
    report = faq.add_all([PRICE, PRICE], by="ann")
    assert report.unchanged == (1, 1)
    assert faq.changed_since(-1)[0] == before


def test_two_entries_of_one_import_that_contradict_each_other_are_a_conflict(faq: FaqCache) -> None:
    report = faq.add_all([PRICE, NewEntry(PRICE.question, "Nine."), NewEntry("Why?", "So.")], by="ann")
    assert report.added == (1, 2)
    assert [(conflict.number, conflict.kept, conflict.refused) for conflict in report.conflicts] == [
        (1, "Ten euros.", "Nine.")
    ]


def test_an_import_with_a_bad_row_writes_nothing(faq: FaqCache) -> None:
    with pytest.raises(FaqError, match="no question"):
        faq.add_all([PRICE, NewEntry(" ?", "x")], by="ann")
    assert faq.entries() == []


def test_a_failed_question_is_pending_with_its_evidence_and_counted(faq: FaqCache) -> None:
    evidence = AnswerEvidence("c1", "d1", "A passage.")
    faq.collect("Who is it?", "I do not know", [evidence])
    entry = faq.collect("who is it", "I do not know", [])
    assert (entry.number, entry.status, entry.answer, entry.asked, entry.evidence) == (1, "pending", "", 2, (evidence,))
    answered = faq.add(NewEntry("Who is it?", "Ann."), by="bob")
    assert (answered.number, answered.status, answered.answer, answered.asked) == (1, "approved", "Ann.", 2)


def test_an_entry_without_an_answer_cannot_be_approved(faq: FaqCache) -> None:
    number = faq.add(NewEntry("Why?"), by="ann").number
    with pytest.raises(FaqError, match="no answer yet"):
        faq.change(number, by="ann", status="approved")
    assert faq.change(number, by="ann", status="approved", answer="So.").status == "approved"


def test_entries_whose_documents_changed_or_went_become_stale(faq: FaqCache) -> None:
    before, after = Document("d1", "t", "old"), Document("d1", "t", "new")
    source = AnswerSource("d1", content_hash(before))
    faq.add(NewEntry("A?", "a", sources=(source,)), by="ann")
    faq.add(NewEntry("B?", "b", sources=(AnswerSource("d1"),)), by="ann")
    faq.add(NewEntry("C?", "c", sources=(AnswerSource("gone"),)), by="ann")
    faq.add(NewEntry("D?", "d"), by="ann")
    assert faq.flag_stale({"d1": content_hash(before), "gone": "x"}) == []
    assert faq.flag_stale({"d1": content_hash(after)}) == [1, 3]
    assert faq.counts() == {"pending": 0, "approved": 2, "stale": 2}
    assert (faq.get(1).version, faq.get(1).changed_by) == (2, "")


def test_who_decides_about_a_version_that_is_no_more_is_told(faq: FaqCache) -> None:
    entry = faq.add(NewEntry("Who?", "Ada."), by="a")
    faq.change(entry.number, by="b", version=entry.version, answer="Byron.")
    with pytest.raises(FaqConflictError, match="changed meanwhile"):
        faq.change(entry.number, by="a", version=entry.version, answer="Babbage.")
    with pytest.raises(FaqConflictError, match="changed meanwhile"):
        faq.remove(entry.number, by="a", version=entry.version)
    assert faq.get(entry.number).answer == "Byron."


def test_unknown_numbers_and_statuses_are_refused(faq: FaqCache) -> None:
    with pytest.raises(FaqError, match="no entry 7"):
        faq.get(7)
    with pytest.raises(FaqError, match="no entry 7"):
        faq.remove(7, by="ann")
    with pytest.raises(FaqError, match="pending, approved, stale"):
        faq.add(NewEntry("A?", "a", "good"), by="ann")


def test_a_faq_of_a_newer_version_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    newer = Database(tmp_path / "newer.db")
    with newer.writing() as connection:
        connection.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(IndexStateError, match="version 99"):
        FaqCache(tmp_path / "newer.db")
    (tmp_path / "damaged.db").write_bytes(b"no database" * 100)
    with pytest.raises(IndexStateError, match="damaged"):
        FaqCache(tmp_path / "damaged.db")


def test_threads_and_a_second_reader_see_one_faq(faq: FaqCache, tmp_path: Path) -> None:
    def work(number: int) -> None:
        faq.add(NewEntry(f"Question {number}?", "a"), by="ann")
        faq.collect("Asked by all?", "", [])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other = FaqCache(tmp_path / "faq.db")
    assert len(other.entries()) == 9
    entry = other.find("Asked by all?")
    assert entry is not None
    assert entry.asked == 8


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("What is it?", "what is  it", True),
        ("败血症？", "败血症", True),
        ("Is it?", "Is it not?", False),
        ("In 1990?", "In 1991?", False),
    ],
)
def test_a_key_forgives_form_alone(one: str, two: str, same: bool) -> None:
    assert (question_key(one) == question_key(two)) is same


def test_the_same_answer_again_brings_approval_and_sources_and_takes_neither_away(faq: FaqCache) -> None:
    source = AnswerSource("d1", "ab")
    faq.add(NewEntry("Why?", "So.", "pending"), by="ann")
    assert faq.add(NewEntry("Why?", "So."), by="bob").status == "approved"
    assert faq.add(NewEntry("Why?", "So.", sources=(source,)), by="bob").sources == (source,)
    report = faq.add_all([NewEntry("Why?", "So.", "pending"), NewEntry("Why?", "So.", "stale")], by="ann")
    assert report.unchanged == (1, 1)
    assert faq.add(NewEntry("Why?", "So.", "pending"), by="ann", replace=True).status == "pending"


def test_questions_that_are_there_or_were_removed_are_known(faq: FaqCache) -> None:
    faq.add(PRICE, by="ann")
    faq.remove(faq.add(NewEntry("Why?", "So."), by="ann").number, by="bob")
    assert faq.known_keys() == {"what does it cost", "why"}


def test_a_new_entry_may_bring_what_a_program_said_and_saw(faq: FaqCache) -> None:
    evidence = AnswerEvidence("c1", "d1", "A passage.")
    entry = faq.add(NewEntry("Why?", given="I do not know", evidence=(evidence,), asked=2), by="ann")
    assert (entry.status, entry.given, entry.evidence, entry.asked) == ("pending", "I do not know", (evidence,), 2)


def test_a_removal_is_a_new_revision_even_where_it_takes_the_newest_entry(faq: FaqCache) -> None:
    number = faq.add(NewEntry("Is the card here?", "Yes."), by="ada").number
    revision, _ = faq.changed_since(-1)
    faq.remove(number, by="ada")
    assert faq.changed_since(revision) == (revision + 1, {number: None})
