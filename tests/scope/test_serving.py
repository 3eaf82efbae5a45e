"""Each token reads what its labels allow, at every address."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kraq_dspy import Workspace
from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.callers import Callers
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.asset.store.faq import FAQ, NewEntry
from kraq_dspy.errors import ConfigError
from kraq_dspy.extend import FaqCache
from tests.kept import kept_index
from tests.scope.corpora import CANARY, QUESTIONS, corpus

BOTH = corpus(16)
TOKENS = """
[[token]]
name = "staff"
token = "staff-token"
labels = ["staff"]
[[token]]
name = "owner"
token = "owner-token"
everything = true
[[token]]
name = "nobody"
token = "nobody-token"
"""
SECRET = BOTH.documents[1]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("serving")
    (folder / "tokens.toml").write_text(TOKENS)
    kept_index(BOTH.documents, folder / "both.kraq")
    with FaqCache(folder / "both.kraq" / FAQ) as entries:
        entries.add(NewEntry("What is known of the deal?", SECRET.text), by="me")
    with Workspace.open(folder / "both.kraq") as space:
        served = {"both": ServedIndex("both", space, edit=True)}
        settings = ServeSettings(callers=Callers(folder / "tokens.toml", list(served)))
        with TestClient(make_app(served, settings), base_url="http://127.0.0.1") as client:
            yield client
        served["both"].close()


ADDRESSES = (
    "/api/status", "/api/questions", "/api/starters", "/api/communities", "/api/search?q=Helsinki",
    "/api/search?q=zq", "/api/faq",
)  # fmt: skip


def bearing(who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {who}-token"}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_shows_what_the_labels_allow(address: str, client: TestClient) -> None:
    assert client.get(address, headers=bearing("owner")).status_code == 200
    answer = client.get(address, headers=bearing("staff"))
    assert answer.status_code == 200
    assert not CANARY.search(answer.text)
    assert client.get(address, headers=bearing("nobody")).status_code == 403


def test_a_document_that_may_not_be_read_is_not_there(client: TestClient) -> None:
    assert SECRET.text in client.get(f"/api/documents/{SECRET.id}", headers=bearing("owner")).text
    for id in (SECRET.id, "never-there.txt"):
        answer = client.get(f"/api/documents/{id}", headers=bearing("staff"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_answers_are_of_the_scope_and_a_body_cannot_widen_it(client: TestClient) -> None:
    for more in ({}, {"program": "combined"}, {"stream": True}):
        answer = client.post("/api/ask", json={"question": QUESTIONS[0], **more}, headers=bearing("staff"))
        assert answer.status_code == 200
        assert not CANARY.search(answer.text)
    assert CANARY.search(client.post("/api/ask", json={"question": QUESTIONS[0]}, headers=bearing("owner")).text)
    assert client.post("/api/ask", json={"question": QUESTIONS[0]}, headers=bearing("nobody")).status_code == 403
    body = {"question": QUESTIONS[0], "scope": ["board"], "labels": ["board"], "everything": True}
    assert not CANARY.search(client.post("/api/ask", json=body, headers=bearing("staff")).text)


def test_the_owner_alone_reviews_prepared_answers(client: TestClient) -> None:
    for who, status in (("staff", 404), ("nobody", 403)):
        assert client.get("/api/faq/1", headers=bearing(who)).status_code == status
        body: dict[str, object] = {"action": "reject", "version": 1}
        assert client.post("/api/faq/1", json=body, headers=bearing(who)).status_code == 403

    assert client.get("/api/status", headers=bearing("owner")).json()["edit"]
    assert not client.get("/api/status", headers=bearing("staff")).json()["edit"]
    entry = client.get("/api/faq/1", headers=bearing("owner")).json()
    assert entry["answer"] == SECRET.text
    body = {"action": "edit", "answer": "It was sold.", "document_ids": [SECRET.id], "version": entry["version"]}
    edited = client.post("/api/faq/1", json=body, headers=bearing("owner"))
    assert edited.status_code == 200, edited.text
    assert edited.json()["answer"] == "It was sold."


def test_metrics_count_everybodys_questions_and_are_not_for_those_with_labels(client: TestClient) -> None:
    """Who has no labels reads no document, and may watch the server."""
    statuses = {who: client.get("/metrics", headers=bearing(who)).status_code for who in ("owner", "nobody", "staff")}
    assert statuses == {"owner": 200, "nobody": 200, "staff": 404}


def test_conversations_and_chat_clients_are_told_what_the_scope_may_read(client: TestClient) -> None:
    history = [{"question": f"What is {SECRET.title}?", "answer": "It is a company."}]
    body = {"question": "Who bought it?", "history": history}
    answer_for_staff = client.post("/api/ask", json=body, headers=bearing("staff")).json()
    asked = {"question", "standalone_question", "query"}  # their own words come back in these

    def rest(value: object) -> object:
        if isinstance(value, dict):
            return {name: rest(each) for name, each in value.items() if name not in asked}
        return [rest(each) for each in value] if isinstance(value, list) else value

    assert answer_for_staff["hits"]
    assert not CANARY.search(str(rest(answer_for_staff)))

    names = client.get("/v1/models", headers=bearing("staff")).json()["data"]
    assert {each["id"].partition("/")[0] for each in names} == {"both"}
    for stream in (False, True):
        chat = {"model": "both", "messages": [{"role": "user", "content": QUESTIONS[0]}], "stream": stream}
        assert not CANARY.search(client.post("/v1/chat/completions", json=chat, headers=bearing("staff")).text)
    assert client.post("/v1/chat/completions", json=chat, headers=bearing("nobody")).status_code == 403


@pytest.mark.parametrize(
    "line", ["labels = []", 'labels = "staff"', 'labels = ["a"]\neverything = true', "everything = 1.5"]
)
def test_a_file_whose_labels_say_nothing_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "tokens.toml").write_text(f'[[token]]\nname = "a"\ntoken = "abcdefgh"\n{line}\n')
    with pytest.raises(ConfigError):
        Callers(tmp_path / "tokens.toml", ["both"])
