"""Answers follow their documents: whatever changes an index flags what it no longer supports, and loses no answer."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kraq_dspy import Index, Limits, add_documents, build_index, export_index, remove_documents, update_index
from kraq_dspy.asset.store.faq import FAQ, NewEntry, content_hash
from kraq_dspy.errors import BudgetExceededError, IndexStateError, UnknownRecordError
from kraq_dspy.extend import FaqCache
from kraq_dspy.indexing.faq.files import read_entries
from kraq_dspy.indexing.faq.sources import flag_stale, present_sources, sources_of
from kraq_dspy.indexing.index.check import check_index, repair_index
from kraq_dspy.records import AnswerSource, Document
from kraq_dspy.settings import CommunitySettings, Settings
from tests.conftest import KeywordEmbedder
from tests.kept import kept_index

ADA = Document("ada", "Ada", "Ada Lovelace worked with Charles Babbage. Charles Babbage designed the Engine in London.")
BYRON = Document("byron", "Byron", "Lord Byron was the father of Ada Lovelace. Lord Byron met Mary Shelley in Geneva.")
TURING = Document("turing", "Turing", "Alan Turing worked at Bletchley Park. Alan Turing designed the Bombe.")
CHANGED = Document("byron", "Byron", BYRON.text + " Lord Byron wrote Don Juan.")


@pytest.fixture
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("ada", "babbage", "byron", "shelley", "turing")


@pytest.fixture
def path(tmp_path: Path, embedder: KeywordEmbedder) -> Path:
    settings = Settings(communities=CommunitySettings(max_size=4))
    return kept_index([ADA, BYRON, TURING], tmp_path / "i.kraq", settings=settings, embedder=embedder)


def answer_about(path: Path, *documents: Document) -> None:
    faq = FaqCache(path / FAQ)
    for document in documents:
        source = AnswerSource(document.id, content_hash(document))
        faq.add(NewEntry(f"What of {document.title}?", "That.", sources=(source,)), by="ann")
    faq.close()


def statuses(path: Path) -> list[str]:
    faq = FaqCache(path / FAQ, write=False)
    try:
        return [entry.status for entry in faq.entries()]
    finally:
        faq.close()


def test_a_changed_and_a_removed_document_take_their_answers_out_of_service(
    path: Path, embedder: KeywordEmbedder
) -> None:
    answer_about(path, ADA, BYRON, TURING)
    assert add_documents(path, [CHANGED], embedder=embedder).stale_answers == 1
    assert statuses(path) == ["approved", "stale", "approved"]
    assert remove_documents(path, ["turing"], embedder=embedder).stale_answers == 1
    assert statuses(path) == ["approved", "stale", "stale"]
    assert update_index(path, [ADA, CHANGED, TURING], embedder=embedder).stale_answers == 0
    report = check_index(path)
    assert report.whole
    assert report.answers == {"pending": 0, "approved": 1, "stale": 2}


def test_answers_are_flagged_even_where_the_run_stops_right_after(path: Path, embedder: KeywordEmbedder) -> None:
    answer_about(path, BYRON)
    with pytest.raises(BudgetExceededError):
        add_documents(path, [CHANGED], embedder=embedder, limits=Limits(max_calls=0))
    assert statuses(path) == ["stale"]


def test_an_index_without_a_faq_gets_none(path: Path, embedder: KeywordEmbedder) -> None:
    assert add_documents(path, [CHANGED], embedder=embedder).stale_answers == 0
    assert check_index(path).answers is None
    with Index.open(path) as index:
        assert flag_stale(index) == []
    assert not (path / FAQ).exists()


def test_a_flag_that_is_overdue_is_found_and_mended(path: Path, embedder: KeywordEmbedder) -> None:
    answer_about(path, ADA, CHANGED)  # as one that was imported, or restored from a copy
    [problem] = check_index(path).problems
    assert (problem.repair, problem.count, problem.ids) == ("flag", 1, ("2",))
    assert repair_index(path, embedder=embedder).whole
    assert statuses(path) == ["approved", "stale"]


def test_a_damaged_faq_is_a_problem_and_not_a_crash(path: Path) -> None:
    (path / FAQ).write_bytes(b"no database" * 100)
    [problem] = check_index(path).problems
    assert "FAQ cache cannot be read" in problem.what
    with pytest.raises(IndexStateError, match="from a copy"):
        repair_index(path)


def test_a_rebuild_and_an_export_keep_every_answer(path: Path, embedder: KeywordEmbedder, tmp_path: Path) -> None:
    answer_about(path, ADA)
    with Index.open(path) as index:
        settings = index.manifest.settings
    build_index([ADA, BYRON], path, settings=settings, embedder=embedder, replace=True)
    assert statuses(path) == ["approved"]
    written = export_index(path, tmp_path / "out", "jsonl")
    assert written[-1].name == "faq.jsonl"
    [row] = read_entries(written[-1])
    assert row == NewEntry("What of Ada?", "That.", sources=(AnswerSource("ada", content_hash(ADA)),))


@pytest.mark.parametrize("ids", [["ada", "nowhere"], ["nowhere"]])
def test_sources_are_documents_that_exist(path: Path, ids: Sequence[str]) -> None:
    with Index.open(path) as index:
        assert sources_of(index, ["ada", "ada"]) == (AnswerSource("ada", content_hash(ADA)),)
        assert [source.document_id for source in present_sources(index, ids)] == [id for id in ids if id == "ada"]
        with pytest.raises(UnknownRecordError, match="no document 'nowhere'"):
            sources_of(index, ids)
