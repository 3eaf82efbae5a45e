"""A server notes its requests: in the access log and under /metrics."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from kraq_dspy.apps import views
from kraq_dspy.apps.serve import replies
from kraq_dspy.apps.serve.access_log import AccessLog
from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.metrics import Metrics
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.watch import RequestRecord
from kraq_dspy.errors import ConfigError
from kraq_dspy.records import Usage
from tests.apps.serve.conftest import open_all

TOKEN = "a-token-of-tests"
QUESTION = {"question": "Who wrote Don Juan?", "program": "traditional"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "access.jsonl"


@pytest.fixture
def client(poets: Path, log: Path) -> Iterator[TestClient]:
    lm = DummyLM([{"answer": "Lord Byron"}] * 9)
    with open_all(poets, models={"default": lm}) as indexes:
        app = make_app(indexes, ServeSettings(token=TOKEN), access_log=AccessLog(str(log)))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with TestClient(app, "http://localhost", headers=headers, raise_server_exceptions=False) as client:
            yield client


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize("stream", [False, True])
def test_a_line_says_who_asked_what_answered_and_what_it_took(client: TestClient, log: Path, stream: bool) -> None:
    assert client.post("/api/ask", json={**QUESTION, "stream": stream}).status_code == 200
    [line] = lines(log)

    assert (line["who"], line["index"], line["program"]) == ("token", "poets", "traditional")
    assert (line["method"], line["path"], line["status"]) == ("POST", "/api/ask", 200)
    assert line["answered"] is True
    assert line["cache"] is False
    assert line["usage"]["calls"] == 1
    assert line["seconds"] > 0
    assert line["time"].endswith("+00:00")
    assert "Don Juan" not in log.read_text()  # neither question nor answer


def test_a_prepared_answer_says_that_no_model_was_asked(client: TestClient, log: Path) -> None:
    client.post("/api/ask", json={"question": "Where did Byron live?"})
    [line] = lines(log)
    assert line["answered"] is line["cache"] is True
    assert line["usage"]["calls"] == 0


def test_refused_and_failed_requests_are_in_the_log(client: TestClient, log: Path) -> None:
    client.get("/api/status", headers={"Authorization": "Bearer another-token"})
    client.get("/api/entities/none")
    client.post("/api/ask", json={**QUESTION, "program": "none"})
    assert [(line["status"], line["who"], line["address"]) for line in lines(log)] == [
        (401, "", ""),
        (404, "token", "/api/entities/{id}"),
        (422, "token", "/api/ask"),
    ]


def test_metrics_count_requests_answers_and_what_models_took(client: TestClient) -> None:
    client.post("/api/ask", json=QUESTION)
    client.post("/api/ask", json=QUESTION)
    client.get("/api/entities/none")
    shown = client.get("/metrics")
    assert shown.headers["content-type"].startswith("text/plain")
    samples = samples_in(shown.text)

    assert samples["kraq_requests_total", "/api/ask", "200", "POST"] == 2
    assert samples["kraq_requests_total", "/api/entities/{id}", "404", "GET"] == 1
    assert samples["kraq_answers_total", "false", "poets", "traditional"] == 2
    assert samples["kraq_answer_seconds_count", "poets", "traditional"] == 2
    assert samples["kraq_model_calls_total", "poets", "traditional"] == 2
    assert samples["kraq_questions_in_progress",] == 0


def test_metrics_tell_tokens_by_kind_and_questions_that_were_not_answered() -> None:
    metrics = Metrics(lambda: 0, lambda: 0)
    asked = RequestRecord("POST", "/api/ask", "/api/ask", status=200, index="poets", program="raptor")
    metrics.note(replace(asked, answered=True, usage=Usage(1, 70, 3), cost=0.5), 0.1)
    metrics.note(replace(asked, status=503), 0.1)
    samples = samples_in(metrics.text().decode())

    assert samples["kraq_model_tokens_total", "poets", "prompt", "raptor"] == 70
    assert samples["kraq_model_tokens_total", "completion", "poets", "raptor"] == 3
    assert samples["kraq_model_cost_total", "poets", "raptor"] == 0.5
    assert samples["kraq_answers_total", "false", "poets", "raptor"] == 1
    assert samples["kraq_failed_answers_total", "poets", "raptor"] == 1


def samples_in(text: str) -> dict[tuple[str, ...], float]:
    """The numbers that Prometheus reads, by their name and the values of their labels in order."""
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples]
    return {(each.name, *sorted(each.labels.values())): each.value for each in samples}


def test_a_log_that_was_moved_away_is_begun_again(log: Path) -> None:
    access = AccessLog(str(log))
    access.note(RequestRecord("GET", "/first"), 0.1)
    moved = log.rename(log.with_suffix(".1"))
    access.note(RequestRecord("GET", "/second"), 0.1)

    assert [line["path"] for line in lines(moved)] == ["/first"]
    assert [line["path"] for line in lines(log)] == ["/second"]


def test_a_log_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        AccessLog(str(tmp_path / "none" / "access.jsonl"))


def test_the_description_has_every_address_with_its_parameters(client: TestClient) -> None:
    description = client.get("/openapi.json", headers={"Authorization": ""}).json()
    assert description["openapi"].startswith("3.1")
    paths = description["paths"]
    assert {"/api/ask", "/api/documents/{id}", "/api/faq/{number}", "/v1/chat/completions"} <= paths.keys()
    search = {each["name"]: each for each in paths["/api/search"]["get"]["parameters"]}
    assert search["limit"]["schema"]["maximum"] == 50
    [number] = [each for each in paths["/api/faq/{number}"]["get"]["parameters"] if each["in"] == "path"]
    assert number["schema"] == {"type": "integer"}
    ask = description["components"]["schemas"]["AskRequest"]
    assert ask["required"] == ["question"]
    names = [operation["operationId"] for path in paths.values() for operation in path.values()]
    assert len(names) == len(set(names))


def described_replies(description: Any) -> Iterator[tuple[str, str, str]]:
    """(address, method, name of the view) of what is described as one."""
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            if "$ref" in schema:
                yield path, method, schema["$ref"].rpartition("/")[2]


def test_what_is_answered_has_the_fields_that_the_description_says(client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    communities = client.get("/api/communities").json()["items"]
    community = max(communities, key=lambda each: (each["n_entities"], each["id"]))["id"]
    entity = client.get("/api/search?q=Ada").json()["entities"][0]["id"]
    ids = {"/api/communities": community, "/api/entities": entity}

    checked = []
    for path, method, name in described_replies(description):
        address = path.replace("{id}", ids.get(path.partition("/{")[0], ""))
        body = {"question": "Who wrote Don Juan?"} if path == "/api/ask" else {"q": "Ada"}
        reply = (
            client.get(address, params=body if path == "/api/search" else {})
            if method == "get"
            else client.post(address, json=body)
        )
        assert reply.status_code == 200, (address, reply.text)
        ({**vars(replies), **vars(views)}[name]).model_validate(reply.json(), strict=False)
        checked.append(path)
    assert len(checked) >= 15
