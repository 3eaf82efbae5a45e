"""Serves an index that is being built, changed, damaged, of another version or without questions."""

import json
import logging
import shutil
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")

from starlette.testclient import TestClient

from kraq_dspy import Index
from kraq_dspy.apps.cli.serving import say_started
from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import served
from kraq_dspy.records import Document
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace
from tests.apps.serve.conftest import EMBEDDER, open_all
from tests.asset.store.indexes import current_home
from tests.conftest import WarmShell
from tests.kept import kept_index

ASK = {"question": "Who wrote Don Juan?", "program": "traditional"}


@pytest.fixture(scope="module")
def byron(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the encoder that the command line loads."""
    out = tmp_path_factory.mktemp("states") / "byron.kraq"
    return kept_index([Document("byron", "Byron", "Lord Byron wrote Don Juan in Italy.")], out)


@pytest.fixture
def copy_of_byron(byron: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(byron, tmp_path / "byron.kraq"))


def test_what_another_process_adds_is_shown_without_a_restart_once_it_is_complete(
    copy_of_byron: Path, kraq: WarmShell, tmp_path: Path
) -> None:
    (tmp_path / "faraday.txt").write_text("Michael Faraday built a motor. Michael Faraday met Lord Byron.")

    with served([copy_of_byron], Workspace.open) as indexes:
        app = make_app(indexes, ServeSettings())
        with TestClient(app, "http://localhost") as client:
            question = {**ASK, "question": "Who built a motor?"}
            assert "Faraday" not in client.post("/api/ask", json=question).json()["answer"]
            with Index.open(copy_of_byron) as reader:  # of the state that is served
                added = kraq("update", "--add", copy_of_byron, tmp_path / "faraday.txt")
                assert added.returncode == 0, added.stderr
                assert reader.counts()["documents"] == 1
            assert client.get("/api/status").json()["counts"]["documents"] == 2
            assert "Faraday" in client.post("/api/ask", json=question).json()["answer"]
            assert [each["document_id"] for each in client.get("/api/search?q=motor").json()["passages"]] == [
                "faraday.txt"
            ]


def test_a_new_state_that_cannot_be_read_is_logged_and_the_one_before_stays_served(
    copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_all(copy) as indexes, TestClient(make_app(indexes, ServeSettings()), "http://localhost") as client:
        before = client.get("/api/questions").json()
        manifest = copy / "manifest.json"
        fields = json.loads(manifest.read_text("utf-8"))
        manifest.write_text(json.dumps({**fields, "schema_version": 99}), "utf-8")  # a newer kraq wrote it
        with caplog.at_level(logging.ERROR, "kraq_dspy"):
            assert client.get("/api/questions").json() == before
            assert client.post("/api/ask", json=ASK).status_code == 200
        assert [record.getMessage().count("schema version 99") for record in caplog.records] == [1]
        manifest.write_text(json.dumps(fields), "utf-8")
        assert client.get("/api/questions").json() == before


def test_an_index_that_was_never_complete_is_served_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.kraq"
    Index.create(new, Settings(), encoder_name=EMBEDDER.name, encoder_dimension=EMBEDDER.dimension).close()
    with open_all(new) as indexes, TestClient(make_app(indexes, ServeSettings()), "http://localhost") as client:
        assert client.get("/api/status").json()["complete"] is False
        assert client.get("/api/questions").json()["items"] == []
        assert client.post("/api/ask", json=ASK).json()["hits"] == []
        say_started(indexes, "")
    printed = "".join(capsys.readouterr().err.split())  # the terminal's lines end anywhere in a long path
    assert f"new is unfinished; go on: kraq index {new}".replace(" ", "") in printed


@pytest.mark.parametrize("words", [["serve"], ["mcp"]])
@pytest.mark.parametrize("state", ["missing", "damaged", "of another version"])
def test_every_command_that_serves_says_what_is_wrong_and_ends(
    kraq: WarmShell, copy_of_byron: Path, tmp_path: Path, words: list[str], state: str
) -> None:
    index = copy_of_byron
    if state == "missing":
        index = tmp_path / "none.kraq"
    elif state == "damaged":
        (current_home(index) / "index.db").write_bytes(b"torn" * 1000)
    else:
        manifest = index / "manifest.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text("utf-8")), "schema_version": 99}), "utf-8")
    ended = kraq(words[0], index, *words[1:], cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    message = {"missing": "There is no index", "damaged": "damaged", "of another version": "schema version 99"}[state]
    assert ended.stderr.startswith("Error: ")
    assert message in ended.stderr
