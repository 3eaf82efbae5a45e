"""Asks each door, which are the command line, HTTP and an agent's tools, for the same records and answers."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kraq_dspy.apps.cli.ask import answer_fields
from kraq_dspy.apps.cli.questions import ListQuestions
from kraq_dspy.apps.cli.terminal import print_json
from kraq_dspy.apps.mcp.tools import IndexTools
from kraq_dspy.apps.views import Answer
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program
from tests.apps.serve.conftest import EMBEDDER

KEYS = Path(__file__).with_name("keys_of_views.txt")
ASKED = "Who wrote Don Juan?"
NAMES_FROM_DATA = {"notes", "details", "timings"}
"""Their keys are a program's own."""


def key_paths(value: Any, place: str) -> Iterator[str]:
    """A line for each key, with those that lead to it ("search passages[] text")."""
    if isinstance(value, list):
        for each in value:
            yield from key_paths(each, f"{place}[]")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield f"{place} {key}"
            if key not in NAMES_FROM_DATA:
                yield from key_paths(each, f"{place} {key}")


@pytest.fixture(scope="module")
def tools(poets: Path) -> Iterator[IndexTools]:
    with Workspace.open(poets, embedder=EMBEDDER) as space:
        yield IndexTools(space, choose_program("traditional", "bm25", options={"k": 2}))


@pytest.fixture
def http(client: TestClient) -> dict[str, Any]:
    community = client.get("/api/communities").json()["items"][0]["id"]
    entity = client.get("/api/search?q=Byron&kinds=entities").json()["entities"][0]["id"]
    places = [
        "/api/questions",
        "/api/starters",
        "/api/communities",
        f"/api/communities/{community}",
        f"/api/communities/{community}/passages",
        f"/api/communities/{community}/graph",
        f"/api/entities/{entity}",
        f"/api/entities/{entity}/graph",
        "/api/documents/byron",
        "/api/search?q=Byron",
    ]
    replies = {place: client.get(place).json() for place in places}
    body = {"question": ASKED, "program": "traditional", "retriever": "bm25", "options": {"k": 2}}
    replies["/api/ask"] = client.post("/api/ask", json=body).json()
    named = {community: "{community}", entity: "{entity}"}
    return {_renamed(place, named): reply for place, reply in replies.items()}


@pytest.fixture
def agent(tools: IndexTools) -> dict[str, Any]:
    listed = tools.questions_about()
    return {
        "ask": asyncio.run(tools.ask(ASKED)),
        "search": tools.search("Byron"),
        "starters": tools.starters(),
        "questions_about": listed,
        "questions_about a topic": tools.questions_about("Byron"),
        "community": tools.community(listed["questions"][0]["community_id"]),
        "neighbours_of": tools.neighbours_of("Lord Byron"),
        "read_document": tools.read_document("byron"),
    }


@pytest.fixture
def shell(poets: Path, tools: IndexTools, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    replies = {}
    for name, starters in [("kraq questions", None), ("kraq questions --starters", 12)]:
        ListQuestions(index_dir=poets, starters=starters, json=True).run()
        replies[name] = json.loads(capsys.readouterr().out)

    space, choice = tools.space, tools.choice
    answer = space.ask(ASKED, space.make_program(choice))
    print_json(answer_fields(ASKED, choice.spec.name, "embedded", answer))
    replies["kraq ask"] = json.loads(capsys.readouterr().out)
    return replies


def _renamed(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return text


def test_each_door_answers_with_the_keys_that_it_is_known_for(
    http: dict[str, Any], agent: dict[str, Any], shell: dict[str, Any]
) -> None:
    replies = {**http, **agent, **shell}
    lines = {line: None for place, reply in replies.items() for line in key_paths(reply, place)}
    assert sorted(lines) == KEYS.read_text("utf-8").splitlines()


def test_notes_of_a_program_are_lines_as_the_description_says(client: TestClient) -> None:
    reply = client.post("/api/ask", json={"question": ASKED, "program": "combined"}).json()
    assert Answer.model_validate(reply).notes == reply["notes"] != []
    answer = client.get("/openapi.json").json()["components"]["schemas"]["Answer"]
    assert answer["properties"]["notes"]["items"] == {"type": "string"}


def test_doors_tell_the_same_of_a_question(http: dict[str, Any], agent: dict[str, Any], shell: dict[str, Any]) -> None:
    fields = ("text", "topic", "level", "community_id", "evidence", "evidence_by", "share")
    by_id = {each["id"]: each for each in http["/api/questions"]["items"]}
    for_agents = {each["question_id"]: each for each in agent["questions_about"]["questions"]}
    in_shell = {each["id"]: each for each in shell["kraq questions"]}
    assert by_id.keys() == in_shell.keys() >= for_agents.keys()

    for id, question in for_agents.items():
        shared = {field: question[field] for field in fields}
        assert shared == {field: by_id[id][field] for field in fields}
        assert shared == {field: in_shell[id][field] for field in fields}
        assert question["n_documents"] == by_id[id]["n_documents"] == len(in_shell[id]["document_ids"])


def test_doors_tell_the_same_of_an_answer_and_its_passages(
    http: dict[str, Any], agent: dict[str, Any], shell: dict[str, Any]
) -> None:
    by_http, by_agent, in_shell = http["/api/ask"], agent["ask"], shell["kraq ask"]
    for field in ("question", "answer", "program", "model", "answerable"):
        assert by_http[field] == by_agent[field] == in_shell[field]

    for place, hit in enumerate(by_http["hits"]):
        evidence, in_json = by_agent["evidence"][place], in_shell["hits"][place]
        assert hit["id"] == evidence["chunk_id"] == in_json["chunk"]["id"]
        for field in ("document_id", "text"):
            assert hit[field] == evidence[field] == in_json["chunk"][field]
        for field in ("query", "why"):
            assert hit[field] == evidence[field] == in_json[field]
    assert [each["text"] for each in by_http["next_questions"]] == by_agent["next_questions"]
    assert by_http["next_questions"] == in_shell["next_questions"]
