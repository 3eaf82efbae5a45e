"""Tests coverage and the review of a test set over the API: who gets them, and what the server may edit."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from kraq_dspy import Workspace
from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import served
from kraq_dspy.apps.serve.testset_desk import TestsetDesk
from kraq_dspy.eval import Example, Testset
from kraq_dspy.records import GoldPassage, TestsetRow, content_id
from tests.orchids import ANSWERED, ORCHIDS, index_of_orchids
from tests.whole_program import app

QUESTIONS = [{"question": ANSWERED[0]}, {"question": ANSWERED[1]}]


def write_testset(file: Path) -> Path:
    rows = (
        TestsetRow("t1", "Who wrote Don Juan?", "fact", ("Lord Byron",), supporting_ids=("byron",)),
        TestsetRow("t2", "Where did Byron live?", "fact", ("London",), supporting_ids=("byron",)),
        TestsetRow("t3", "Who was Ada?", "unanswerable", status="stale"),
    )
    return Testset(rows).save(file)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_of_orchids(tmp_path_factory.mktemp("testsets") / "orchids.kraq")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    text = ORCHIDS["cattleya"][:40]
    passage = GoldPassage("c1", "cattleya", 0, 40, content_id("text", text)[:16], ("source",))
    row = TestsetRow("o1", ANSWERED[0], "fact", ("John Lindley",), supporting_ids=("cattleya",), passages=(passage,))
    return Testset((row, *Testset.load(write_testset(tmp_path / "test.jsonl")))).save(tmp_path / "test.jsonl")


def client_over(path: Path, desk: TestsetDesk | None, *, edit: bool) -> Iterator[TestClient]:
    with (
        served([path], Workspace.open, edit=edit, desk=desk) as indexes,
        TestClient(make_app(indexes, ServeSettings()), "http://localhost") as client,
    ):
        yield client


@pytest.fixture
def editor(path: Path, file: Path, tmp_path: Path) -> Iterator[TestClient]:
    asked = tmp_path / "mine.jsonl"
    asked.write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS))
    yield from client_over(path, TestsetDesk.of(asked, file), edit=True)


@pytest.fixture
def reader(path: Path, file: Path) -> Iterator[TestClient]:
    yield from client_over(path, TestsetDesk.of(None, file), edit=False)


@pytest.fixture
def stranger(path: Path) -> Iterator[TestClient]:
    yield from client_over(path, None, edit=True)


def decided(client: TestClient, id: str, action: str, **fields: Any) -> Any:
    version = client.get(f"/api/testset/{id}").json().get("version", "")
    return client.post(f"/api/testset/{id}", json={"action": action, "version": version, **fields})


def test_a_page_learns_what_there_is_to_review(editor: TestClient, reader: TestClient, stranger: TestClient) -> None:
    assert editor.get("/api/desk").json() == {"coverage": True, "testset": {"waiting": 4}, "label": False}
    assert reader.get("/api/desk").json() == {"coverage": False, "testset": {"waiting": 4}, "label": False}
    assert stranger.get("/api/desk").json() == {"coverage": False, "testset": None, "label": False}
    for address in ("/api/coverage", "/api/testset", "/api/testset/t1"):
        assert stranger.get(address).status_code == 404


def test_a_row_comes_with_the_text_of_its_passages(editor: TestClient) -> None:
    row = editor.get("/api/testset/o1").json()
    assert row["passages"][0]["text"] == ORCHIDS["cattleya"][:40]
    assert row["passages"][0]["title"] == "Cattleya"
    assert editor.get("/api/testset/none").status_code == 404


def test_rows_are_decided_and_the_file_has_it(editor: TestClient, file: Path) -> None:
    assert decided(editor, "t1", "approve").json()["status"] == "approved"
    edited = decided(editor, "t2", "edit", question="Where did Lord Byron live?", answers=["London", " "]).json()
    assert (edited["question"], edited["answers"]) == ("Where did Lord Byron live?", ["London"])
    assert edited["status"] == "approved"
    assert decided(editor, "t3", "reject").json()["status"] == "rejected"
    listed = editor.get("/api/testset?status=waiting").json()
    assert [row["id"] for row in listed["items"]] == ["o1"]
    assert listed["counts"] == {"waiting": 1, "approved": 2, "rejected": 1}
    assert [row.status for row in Testset.load(file)] == ["new", "approved", "approved", "rejected"]
    assert decided(editor, "t3", "undo").json()["status"] == "new"


def test_a_decision_about_a_row_that_changed_is_refused(editor: TestClient) -> None:
    version = editor.get("/api/testset/t1").json()["version"]
    decided(editor, "t1", "edit", question="Who wrote it?", answers=["Byron"])
    refused = editor.post("/api/testset/t1", json={"action": "reject", "version": version})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "changed")


def test_a_server_that_may_not_edit_shows_rows_and_changes_none(reader: TestClient, file: Path) -> None:
    before = file.read_bytes()
    refused = decided(reader, "t1", "approve")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "read_only")
    assert reader.get("/api/testset/t1").json()["question"] == "Who wrote Don Juan?"
    assert file.read_bytes() == before


def test_coverage_names_what_no_question_touches_and_rows_about_it_are_added(editor: TestClient, file: Path) -> None:
    coverage = editor.get("/api/coverage").json()
    assert coverage["questions"] == 2
    assert 0 < coverage["untouched"] < coverage["communities"]
    assert all(each["questions"] == 0 for each in coverage["items"])
    every = editor.get("/api/coverage?untouched=false").json()
    assert every["total"] == coverage["communities"]
    assert sum(each["questions"] > 0 for each in every["items"]) == coverage["communities"] - coverage["untouched"]

    offered = []
    for each in coverage["items"]:
        offered += editor.post("/api/coverage/rows", json={"community_id": each["id"]}).json()["items"]
    assert offered
    added = editor.post(f"/api/testset/{offered[0]['id']}", json={"action": "add"})
    assert added.json()["status"] == "approved"
    assert [row.id for row in Testset.load(file)][-1] == offered[0]["id"]
    assert editor.post("/api/testset/never", json={"action": "add"}).status_code == 404
    assert editor.post("/api/coverage/rows", json={"community_id": "never"}).status_code == 404


def test_questions_that_the_documents_do_not_answer_are_listed(path: Path) -> None:
    machine = Example("q2", "How do I descale a coffee machine?", ())
    desk = TestsetDesk([Example("q1", ANSWERED[0], ()), machine])

    with contextmanager(client_over)(path, desk, edit=False) as client:
        listed = client.get("/api/coverage?far=true").json()
        refused = client.get("/api/coverage?refused=true").json()

    assert (listed["far"], listed["total"]) == (0, 0)
    assert (refused["refused"], refused["total"]) == (1, 1)
    assert refused["items"] == [{"id": "q2", "question": machine.question}]


def test_a_file_that_is_no_test_set_is_said_before_anything_is_served(path: Path, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n')
    done = CliRunner().invoke(app, ["serve", str(path), "--testset", str(tmp_path / "x.jsonl")])
    assert done.exit_code != 0
    assert "no row of a test set" in str(done.exception)


def test_a_test_set_is_not_shown_to_a_scope(tmp_path: Path) -> None:
    path = index_of_orchids(tmp_path / "both.kraq", dict.fromkeys(ORCHIDS, ("staff",)))
    file = write_testset(tmp_path / "test.jsonl")
    words = ["serve", str(path), "--testset", str(file), "--scope", "staff"]
    done = CliRunner().invoke(app, words)
    assert "need --owner" in str(done.exception)
