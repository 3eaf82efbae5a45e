"""Every front door refuses what the documents do not answer, offers what they do, and answers when told to."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from typer.testing import CliRunner

pytest.importorskip("starlette", reason="needs the extra serve")

from starlette.testclient import TestClient

from kraq_dspy import Workspace
from kraq_dspy._internal.rag_prediction import REFUSED
from kraq_dspy.apps import index_tools
from kraq_dspy.apps.lines import prediction_lines
from kraq_dspy.apps.mcp.tools import IndexTools
from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.workspace.choices import choose_program
from tests.orchids import ANSWERED, FOREIGN, index_of_orchids
from tests.whole_program import app

PERU = FOREIGN[0]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_of_orchids(tmp_path_factory.mktemp("refusals") / "orchids.kraq")


@pytest.fixture(scope="module")
def client(path: Path) -> Iterator[TestClient]:
    with serving(path, ServeSettings()) as client:
        yield client


def serving(path: Path, settings: ServeSettings) -> TestClient:
    served = {"orchids": ServedIndex("orchids", lambda: Workspace.open(path))}
    return TestClient(make_app(served, settings), base_url="http://localhost")


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def test_the_terminal_refuses_and_offers_and_answers_anyway(path: Path) -> None:
    shown = run("ask", str(path), PERU)
    assert REFUSED in shown
    assert "they answer: 1 What is" in shown
    assert "this corpus does not answer" in shown
    assert REFUSED not in run("ask", str(path), PERU, "--no-refuse")
    assert REFUSED not in run("ask", str(path), ANSWERED[0])


@pytest.mark.parametrize(("score", "n_lines"), [(0.57, 0), (0.18, 1)])
def test_a_threshold_is_shown_only_where_the_question_misses_it(score: float, n_lines: int) -> None:
    prediction = dspy.Prediction(source="refusal", answerable_score=score, threshold=0.21)
    assert len(list(prediction_lines(choose_program("traditional"), prediction))) == n_lines


def test_the_terminal_says_it_in_json(path: Path) -> None:
    refused = json.loads(CliRunner().invoke(app, ["ask", str(path), PERU, "--json"]).stdout)
    assert (refused["answer"], refused["source"], refused["answerable"]) == (REFUSED, "refusal", False)
    assert refused["answerable_score"] < refused["threshold"]
    assert len(refused["next_questions"]) == 3


def test_a_chat_refuses_and_the_number_of_an_offer_asks_it(path: Path) -> None:
    lines = f"{PERU}\n1\n\n"
    shown = " ".join(CliRunner().invoke(app, ["ask", str(path)], input=lines).stdout.split())
    assert REFUSED in shown
    offered = shown.rpartition("they answer: 1 ")[2].partition(" (")[0]
    assert shown.count(offered) >= 2
    assert shown.count(REFUSED) == 1
    anyway = CliRunner().invoke(app, ["ask", str(path), "--no-refuse"], input=lines).stdout
    assert REFUSED not in " ".join(anyway.split())


def test_the_api_refuses_with_offers_and_a_field_of_the_request_answers(client: TestClient) -> None:
    refused = client.post("/api/ask", json={"question": PERU}).json()
    assert (refused["answer"], refused["refused"], refused["answerable"]) == (REFUSED, True, False)
    assert len(refused["next_questions"]) == 3
    assert refused["usage"]["calls"] == 0
    anyway = client.post("/api/ask", json={"question": PERU, "no_refuse": True}).json()
    assert (anyway["refused"], anyway["answerable"]) == (False, False)
    answered = client.post("/api/ask", json={"question": ANSWERED[0]}).json()
    assert (answered["refused"], answered["answerable"]) == (False, True)


def test_a_stream_ends_with_the_refusal_and_writes_no_text(client: TestClient) -> None:
    lines = client.post("/api/ask", json={"question": PERU, "stream": True}).text.splitlines()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert names[-1] == "answer"
    assert "text" not in names
    answer = json.loads(next(line for line in reversed(lines) if line.startswith("data: ")).removeprefix("data: "))
    assert answer["refused"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_client_reads_the_refusal_with_its_offers(stream: bool, client: TestClient) -> None:
    body: dict[str, Any] = {"model": "orchids", "messages": [{"role": "user", "content": PERU}]}
    assert REFUSED in completed(client, body, stream=stream)
    assert "They do answer:\n- What is" in completed(client, body, stream=stream)
    assert REFUSED not in completed(client, {**body, "no_refuse": True}, stream=stream)


def completed(client: TestClient, body: dict[str, Any], *, stream: bool) -> str:
    response = client.post("/v1/chat/completions", json={**body, "stream": stream})
    if not stream:
        return str(response.json()["choices"][0]["message"]["content"])
    data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    return "".join(json.loads(each)["choices"][0]["delta"].get("content") or "" for each in data)


def test_a_server_may_be_told_to_answer_everything(path: Path) -> None:
    with serving(path, ServeSettings(no_refuse=True)) as client:
        assert client.post("/api/ask", json={"question": PERU}).json()["refused"] is False


def test_the_tools_of_agents_refuse_and_a_search_says_that_nothing_answers(path: Path) -> None:
    with Workspace.open(path) as space:
        tools = IndexTools(space, choose_program("traditional"))
        refused = asyncio.run(tools.ask(PERU))
        assert (refused["answer"], refused["refused"], refused["answerable"]) == (REFUSED, True, False)
        assert len(refused["next_questions"]) == 3
        assert asyncio.run(tools.ask(PERU, no_refuse=True))["refused"] is False
        assert asyncio.run(IndexTools(space, choose_program(), no_refuse=True).ask(PERU))["refused"] is False
        assert tools.search(PERU)["answerable"] is False
        assert tools.search(ANSWERED[0])["answerable"] is True
        search = next(tool for tool in index_tools(space) if tool.name == "search")
        assert json.loads(search(query=PERU))["answerable"] is False
