"""Tests labeling over the API: which passages a person may mark, what the file has then, and who gets the page."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import served
from kraq_dspy.apps.serve.testset_desk import LabelingDesk, TestsetDesk
from kraq_dspy.asset.scope import Scope
from kraq_dspy.eval import Testset
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.labeling import Labeling, id_of
from kraq_dspy.indexing.index.vectors_only import build_vectors
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace
from tests.apps.serve.conftest import EMBEDDER, open_all

ASKED = [Example(f"q{n}", text, ()) for n, text in enumerate(("Who wrote Don Juan?", "Who met Ada?", "Who sells tea?"))]


def desk_in(folder: Path) -> TestsetDesk:
    return TestsetDesk(labels=LabelingDesk(ASKED, folder / "few.jsonl", 10))


@pytest.fixture
def client(poets: Path, tmp_path: Path) -> Iterator[TestClient]:
    with ExitStack() as stack:
        indexes = stack.enter_context(open_all(poets, desk=desk_in(tmp_path)))
        yield stack.enter_context(TestClient(make_app(indexes, ServeSettings()), "http://localhost"))


def decided(client: TestClient, action: str, state: Any, *places: int) -> Any:
    question = state["question"] or {"id": "", "passages": []}
    marked = [question["passages"][place]["id"] for place in places]
    return client.post("/api/label", json={"action": action, "id": question["id"], "passages": marked})


def test_marks_of_the_page_are_in_the_file_as_those_of_the_terminal(client: TestClient, tmp_path: Path) -> None:
    first = client.get("/api/label").json()
    assert (first["total"], first["labeled"], first["left"]) == (3, 0, 3)
    assert {"title", "excerpt", "text"} <= first["question"]["passages"][0].keys()

    second = decided(client, "label", first, 0).json()
    third = decided(client, "label", second).json()
    assert (third["labeled"], third["left"]) == (2, 1)

    marked, refused = Testset.load(tmp_path / "few.jsonl").rows
    assert marked.question == first["question"]["text"]
    assert first["question"]["passages"][0]["document_id"] in marked.supporting_ids
    assert (marked.model, marked.id) == ("a person", id_of(marked.question))
    assert refused.type == "unanswerable"
    assert "2 of them now, in " in third["summary"]


def test_what_was_labeled_is_taken_back_and_what_was_put_off_comes_last(client: TestClient, tmp_path: Path) -> None:
    first = client.get("/api/label").json()
    second = decided(client, "later", first).json()
    assert second["question"]["id"] != first["question"]["id"]

    labeled = decided(client, "label", second).json()
    again = decided(client, "undo", labeled).json()
    assert again["question"]["id"] == second["question"]["id"]
    assert Testset.load(tmp_path / "few.jsonl").rows == ()
    assert decided(client, "undo", again).json()["error"]["code"] == "nothing_to_undo"

    for _ in range(3):
        state = client.get("/api/label").json()
        last, state = state["question"]["id"], decided(client, "label", state).json()
    assert state["question"] is None
    assert last == first["question"]["id"]


def test_a_label_of_the_terminal_counts_on_the_page_at_once_and_none_is_lost(
    client: TestClient, poets: Path, tmp_path: Path
) -> None:
    state = client.get("/api/label").json()
    with open_all(poets) as indexes:
        beside = Labeling(indexes["poets"].space, ASKED, tmp_path / "few.jsonl", n=10)
        other = next(each for each in beside.left if id_of(each.question) != state["question"]["id"])
        beside.label(other, [])

    after = decided(client, "label", state).json()
    assert after["labeled"] == 2
    assert len(Testset.load(tmp_path / "few.jsonl").rows) == 2
    late = client.post("/api/label", json={"action": "label", "id": id_of(other.question), "passages": []})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "changed")


def test_only_passages_that_were_brought_can_be_marked(client: TestClient, tmp_path: Path) -> None:
    state = client.get("/api/label").json()
    body = {"action": "label", "id": state["question"]["id"], "passages": ["../secret"]}
    refused = client.post("/api/label", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "no_such_passage")
    assert not (tmp_path / "few.jsonl").exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://elsewhere.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "elsewhere.example"}, 421),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_pages_of_elsewhere_write_no_label(
    client: TestClient, tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    id = client.get("/api/label").json()["question"]["id"]
    content = f'{{"action": "label", "id": "{id}", "passages": []}}'
    answer = client.post("/api/label", content=content, headers={"Content-Type": "application/json", **headers})
    assert answer.status_code == status
    assert not (tmp_path / "few.jsonl").exists()


def test_a_server_that_was_not_started_for_it_labels_nothing(client_of: Callable[..., TestClient]) -> None:
    client = client_of()
    assert client.get("/api/desk").json()["label"] is False
    for answer in (client.get("/api/label"), client.post("/api/label", json={"action": "undo"})):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_labels")


def test_the_page_pools_what_its_owner_may_read_and_other_callers_get_no_desk(tmp_path: Path) -> None:
    path = tmp_path / "x.kraq"
    documents = [Document("a", "A", "Ada is in London.", labels=("hr",)), Document("b", "B", "Byron is in London.")]
    build_vectors(documents, path, embedder=EMBEDDER)
    hr = Scope(["hr"])

    with ExitStack() as stack:
        whole = stack.enter_context(Workspace.open(path, embedder=EMBEDDER))
        of_hr = stack.enter_context(whole.scoped(hr))
        indexes = stack.enter_context(served([path], lambda _: nullcontext(of_hr), desk=desk_in(tmp_path)))
        client = stack.enter_context(TestClient(make_app(indexes, ServeSettings()), "http://localhost"))
        pooled = client.get("/api/label").json()["question"]["passages"]
    assert {each["document_id"] for each in pooled} == {"a"}

    with open_all(path, desk=desk_in(tmp_path)) as indexes:
        assert indexes["x"].scoped(hr).desk is None


def test_a_file_that_was_damaged_meanwhile_is_named_with_its_line_and_kept(client: TestClient, tmp_path: Path) -> None:
    first = client.get("/api/label").json()
    second = decided(client, "label", first, 0).json()
    file = tmp_path / "few.jsonl"
    whole = file.read_text()
    file.write_text(whole + '{"id": "torn')

    for answer in (client.get("/api/label"), decided(client, "label", second)):
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "damaged"
        assert "line 2" in answer.json()["error"]["message"]
    assert file.read_text() == whole + '{"id": "torn'

    file.write_text(whole)
    assert decided(client, "label", second).json()["labeled"] == 2
