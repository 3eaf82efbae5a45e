"""Each token reads what its labels allow, at every address."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kraq_dspy import Workspace, build_index
from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.callers import Callers
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.errors import ConfigError
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
    build_index(BOTH.documents, folder / "both.kraq")
    with Workspace.open(folder / "both.kraq") as space:
        served = {"both": ServedIndex("both", space)}
        settings = ServeSettings(callers=Callers(folder / "tokens.toml", list(served)))
        with TestClient(make_app(served, settings), base_url="http://127.0.0.1") as client:
            yield client
        served["both"].close()


ADDRESSES = (
    "/api/status", "/api/questions", "/api/starters", "/api/communities", "/api/search?q=Helsinki",
    "/api/search?q=zq", "/api/catalogue",
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


@pytest.mark.parametrize(
    "line", ["labels = []", 'labels = "staff"', 'labels = ["a"]\neverything = true', "everything = 1.5"]
)
def test_a_file_whose_labels_say_nothing_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "tokens.toml").write_text(f'[[token]]\nname = "a"\ntoken = "abcdefgh"\n{line}\n')
    with pytest.raises(ConfigError):
        Callers(tmp_path / "tokens.toml", ["both"])
