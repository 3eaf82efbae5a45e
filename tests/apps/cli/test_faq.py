"""Runs `kraq faq` over a real index in this process: entries are added, shown, reviewed and go stale."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.store.faq import FAQ, FaqCache
from kraq_dspy.errors import ConfigError, FaqConflictError, FaqError, UnknownRecordError
from kraq_dspy.records import Document
from tests.kept import kept_index
from tests.whole_program import app

POETS = {
    "ada": "Ada Lovelace wrote notes on the Analytical Engine. Charles Babbage designed that engine.",
    "babbage": "Charles Babbage invented the Difference Engine. Babbage met Ada Lovelace in 1833.",
    "byron": "Lord Byron wrote Don Juan. Lord Byron was the father of Ada Lovelace.",
}
WHO = "Who wrote Don Juan?"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("faq") / "poets.kraq"
    kept_index([Document(name, name, text) for name, text in POETS.items()], out)
    return out


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return copied(built, tmp_path / "poets.kraq")


def copied(built: Path, to: Path) -> Path:
    return Path(shutil.copytree(built, to))


def kraq(capsys: pytest.CaptureFixture[str], *words: str | Path | int, code: int = 0) -> str:
    capsys.readouterr()
    ended = app([str(word) for word in words], standalone_mode=False)  # typer gives back the code of an Exit
    assert (ended or 0) == code
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *words: str | Path | int, code: int = 0) -> Any:
    return json.loads(kraq(capsys, "faq", *words, "--json", code=code))


def test_an_entry_is_added_with_its_source_and_another_answer_is_refused(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = as_json(capsys, "add", index, WHO, "Lord Byron.", "--source", "byron")
    assert (entry["number"], entry["status"], entry["origin"]) == (1, "approved", "person")
    [source] = entry["sources"]
    assert source["document_id"] == "byron"
    assert len(source["content_hash"]) == 32
    with pytest.raises(FaqConflictError):
        kraq(capsys, "faq", "add", index, "who wrote don juan", "Keats.")
    replaced = as_json(capsys, "add", index, WHO, "George Byron.", "--replace", "--pending")
    assert (replaced["number"], replaced["version"], replaced["status"]) == (1, 2, "pending")
    with pytest.raises(FaqError, match="answer is empty"):
        kraq(capsys, "faq", "add", index, "Who?", " ")


def test_neither_looking_nor_a_mistake_makes_a_faq(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert as_json(capsys, "list", index) == []
    assert "empty" in kraq(capsys, "faq", "list", index)
    with pytest.raises(UnknownRecordError, match="no document 'shelley'"):
        kraq(capsys, "faq", "add", index, "Who?", "He.", "--source", "shelley")
    with pytest.raises(FaqError, match="no FAQ cache yet"):
        kraq(capsys, "faq", "remove", index, 3)
    assert not (index / FAQ).exists()


def test_entries_are_listed_by_status_approved_and_removed(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        kraq(capsys, "faq", "add", index, f"Question {number}? [/]", "So.", "--pending")
    assert [entry["number"] for entry in as_json(capsys, "approve", index, 2, 3)] == [2, 3]
    assert [entry["number"] for entry in as_json(capsys, "list", index, "--status", "pending")] == [1]
    shown = kraq(capsys, "faq", "list", index, "--limit", 2)
    assert "Question 1? [/]" in shown
    assert "and 1 more" in shown
    with pytest.raises(FaqError, match="no entry 9"):
        kraq(capsys, "faq", "remove", index, 1, 9)
    assert as_json(capsys, "remove", index, 1, 1) == {
        "removed": [1],
        "left": {"pending": 0, "approved": 2, "stale": 0},
    }


def test_the_list_says_how_often_programs_failed_and_with_what(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kraq(capsys, "faq", "add", index, WHO, "Lord Byron.")
    faq = FaqCache(index / FAQ)
    for number, failure in enumerate(["TimeoutError", "ModelError", "TimeoutError", ""]):
        faq.collect(f"Where was poet {number} born?", "", (), failure)
    faq.close()
    assert "programs failed: 2 TimeoutError, 1 ModelError" in kraq(capsys, "faq", "list", index)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_export_imports_back_unchanged_here_and_elsewhere(
    index: Path, built: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kraq(capsys, "faq", "add", index, WHO, "Lord Byron,\na poet.", "--source", "byron", "--source", "ada")
    kraq(capsys, "faq", "add", index, 'Was "das"?', "=1", "--pending")
    file, other = tmp_path / f"entries.{form}", copied(built, tmp_path / "other.kraq")
    assert as_json(capsys, "list", index, "--out", file) == {"file": str(file), "entries": 2}
    here = as_json(capsys, "add", index, file)
    assert (here["entries"]["unchanged"], here["refused"], here["stale"]) == ([1, 2], [], [])
    assert as_json(capsys, "add", other, file)["entries"]["added"] == [1, 2]


def test_an_import_keeps_what_is_good_and_says_what_is_not(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kraq(capsys, "faq", "add", index, WHO, "Lord Byron.")
    file = tmp_path / "faq.jsonl"
    rows = [
        {"question": WHO, "answer": "Keats."},
        {"question": "Who met Ada?", "answer": "Charles Babbage.", "sources": ["babbage"]},
        {"question": "Why?", "answer": "So.", "sources": ["shelley"]},
    ]
    file.write_text("\n".join([*map(json.dumps, rows), "{"]))
    report = as_json(capsys, "add", index, file, code=1)
    assert report["entries"]["added"] == [2]
    [conflict] = report["entries"]["conflicts"]
    assert (conflict["number"], conflict["kept"], conflict["refused"]) == (1, "Lord Byron.", "Keats.")
    assert [reason.split(":")[0] for reason in report["refused"]] == ["Line 4", "'Why?'"]
    shown = kraq(capsys, "faq", "add", index, file, code=1)
    assert "Keats." in shown
    file.write_text(json.dumps(rows[0]))
    assert as_json(capsys, "add", index, file, "--replace")["entries"]["replaced"] == [1]


def test_wrong_use_of_files_is_an_error(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"\.csv or \.jsonl"):
        kraq(capsys, "faq", "list", index, "--out", tmp_path / "entries.xlsx")


def test_status_and_check_say_what_waits(built: Path, index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(kraq(capsys, "status", built, "--json"))["answers"] is None
    assert json.loads(kraq(capsys, "check", built, "--json"))["answers"] is None
    kraq(capsys, "faq", "add", index, WHO, "Lord Byron.", "--pending")
    assert json.loads(kraq(capsys, "status", index, "--json"))["answers"] == {"pending": 1, "approved": 0, "stale": 0}
    assert "1 pending, 0 approved, 0 stale" in " ".join(kraq(capsys, "status", index).split())


def test_a_seeded_faq_waits_for_review_and_a_second_run_asks_nothing(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        first = as_json(capsys, "seed", built, "--limit", 1)
        again = as_json(capsys, "seed", built)
        last = as_json(capsys, "seed", built)
        with pytest.raises(ConfigError, match="the program behind"):
            kraq(capsys, "faq", "seed", built, "-p", "qa-search")
        listed = as_json(capsys, "list", built)
        assert (first["answered"], first["calls"]) == (1, 1)
        assert (again["known"], again["answered"] + again["unanswered"]) == (1, again["questions"] - 1)
        assert (last["known"], last["calls"]) == (last["questions"], 0)
        assert {entry["origin"] for entry in listed} == {"kraq"}
        assert {entry["status"] for entry in listed} == {"pending"}
        kraq(capsys, "check", built)  # whole, although entries wait
    finally:
        forget_faq(built)


def test_starters_that_were_prepared_are_answered_at_once_with_their_passages_unless_a_program_is_chosen(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        as_json(capsys, "seed", built, "--starters", 1, "--approve")
        [entry] = as_json(capsys, "list", built)
        shown = kraq(capsys, "ask", built, entry["question"])
        assert "prepared in the FAQ cache: entry 1" in shown
        assert f"{entry['evidence'][0]['document_id']}" in shown
        assert "prepared in" not in kraq(capsys, "ask", built, entry["question"], "-p", "combined")
    finally:
        forget_faq(built)


def test_synthetic_pairs_are_made_once_and_counted_by_critic(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        report = as_json(capsys, "seed", built, "--of", "passages", "--audience", "readers of poems")
        again = as_json(capsys, "seed", built, "--of", "passages", "--audience", "readers of poems")
        assert (report["chunks"], report["pairs"], report["failures"], again["calls"]) == (3, 3, 0, 0)
        assert report["added"] + sum(report["rejected"].values()) == 3
        assert again["known"] == report["added"] > 0
        assert {entry["origin"] for entry in as_json(capsys, "list", built)} == {"synthetic"}
        shown = " ".join(kraq(capsys, "faq", "seed", built, "--of", "passages", "--keep", 4, "--limit", 1).split())
        assert "rejected, stand alone 0" in shown
        with pytest.raises(ConfigError, match="audience is empty"):
            kraq(capsys, "faq", "seed", built, "--of", "passages", "--audience", " ")
        tried = as_json(capsys, "seed", built, "--of", "passages", "--critics", "roundtrip")
        assert set(tried["rejected"]) == {"retrieval", "rereading"}
        assert tried["failures"] == 0
        with pytest.raises(ConfigError, match="--keep are for --critics ratings"):
            kraq(capsys, "faq", "seed", built, "--of", "passages", "--critics", "roundtrip", "--keep", 4)
    finally:
        forget_faq(built)


def forget_faq(index: Path) -> None:
    for file in index.glob(f"{FAQ}*"):
        file.unlink()
