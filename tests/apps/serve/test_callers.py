"""Tests who may ask which indexes, by the file of tokens."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kraq_dspy.apps.serve.callers import ANYBODY, Caller, Callers
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.errors import ConfigError

SUPPORT, SALES = "support-token", "sales-token-2"
TOKENS = f"""
[[token]]
name = "support"
token = "{SUPPORT}"

[[token]]
name = "sales"
sha256 = "{hashlib.sha256(SALES.encode()).hexdigest()}"
indexes = ["second"]
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    return path


def bearing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def client(client_of: Callable[..., TestClient], poets: Path, copy: Path, tmp_path: Path) -> TestClient:
    """Over two indexes, poets and second."""
    second = copy.rename(tmp_path / "second.kraq")
    return client_of(poets, second, callers=Callers(written(tmp_path, TOKENS), ["poets", "second"]))


def test_a_token_opens_the_indexes_that_it_names_and_no_others(client: TestClient) -> None:
    everything = client.get("/api/status", headers=bearing(SUPPORT)).json()
    assert (everything["index"], everything["indexes"]) == ("poets", ["poets", "second"])

    some = client.get("/api/status", headers=bearing(SALES)).json()
    assert (some["index"], some["indexes"]) == ("second", ["second"])

    refused = client.get("/api/questions?index=poets", headers=bearing(SALES))
    assert refused.status_code == 404
    assert refused.json()["error"]["message"] == "There is no index 'poets' here; there are: second."
    asked = client.post("/api/ask", json={"question": "Who wrote Don Juan?", "index": "poets"}, headers=bearing(SALES))
    assert asked.status_code == 404
    models = client.get("/v1/models", headers=bearing(SALES)).json()["data"]
    assert {model["id"].partition("/")[0] for model in models} == {"second"}


@pytest.mark.parametrize("headers", [{}, bearing("support-tokem"), {"Authorization": f"Basic {SUPPORT}"}, bearing("")])
def test_without_a_token_of_the_file_nothing_is_answered(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/api/status", headers=headers).status_code == 401
    assert client.get("/metrics", headers=headers).status_code == 401
    assert client.get("/health", headers=headers).status_code == 200


def test_metrics_which_name_every_index_are_for_who_may_ask_all(client: TestClient) -> None:
    assert client.get("/metrics", headers=bearing(SUPPORT)).status_code == 200
    assert client.get("/metrics", headers=bearing(SALES)).status_code == 404


def test_a_token_is_given_and_taken_away_without_a_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, TOKENS)
    callers = Callers(path, ["second"])
    assert callers.of(SUPPORT) == Caller("support")
    assert callers.of(SALES) == Caller("sales", frozenset({"second"}))

    path.write_text('[[token]]\nname = "new"\ntoken = "another-token"\n')
    os.utime(path, ns=(1, 1))
    assert callers.of(SUPPORT) is None
    assert callers.of("another-token") == Caller("new")

    path.write_text("[[token]]\nnaem = 1\n")  # somebody is in the middle of writing
    os.utime(path, ns=(2, 2))
    assert callers.of("another-token") == Caller("new")
    assert "did you mean 'name'?" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold one or more [[token]] entries"),
        ("[[tokens]]\nname = 'a'", "must hold one or more [[token]] entries"),
        ("token = [", "is not valid TOML"),
        ("[[token]]\nname = 'a'\ntoken = 'long-enough'\nindexs = ['docs']", "'indexs' (did you mean 'indexes'?)"),
        ("[[token]]\ntoken = 'long-enough'", "has no name"),
        ("[[token]]\nname = 'a'", "either its token or the sha256"),
        ("[[token]]\nname = 'a'\ntoken = 'short'", "8 characters or more"),
        ("[[token]]\nname = 'a'\nsha256 = 'abc'", "64 hexadecimal digits"),
        ("[[token]]\nname = 'a'\ntoken = 'long-enough'\nindexes = ['wiki']", "no index 'wiki' is served here"),
        ("[[token]]\nname = 'a'\ntoken = 'long-enough'\nindexes = []", "leave it out for all indexes"),
        (
            "[[token]]\nname = 'a'\ntoken = 'long-enough'\n[[token]]\nname = 'a'\ntoken = 'long-enough-2'",
            "another entry",
        ),
        (
            "[[token]]\nname = 'a'\ntoken = 'long-enough'\n[[token]]\nname = 'b'\ntoken = 'long-enough'",
            "another entry",
        ),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Callers(written(tmp_path, text), ["docs"])
    assert message in str(raised.value)
    assert "tokens.toml" in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no file of tokens .*none\.toml"):
        Callers(tmp_path / "none.toml", ["docs"])


def test_an_address_beyond_this_machine_is_content_with_a_file_of_tokens(tmp_path: Path) -> None:
    callers = Callers(written(tmp_path, '[[token]]\nname = "a"\ntoken = "long-enough"'), ["docs"])
    settings = ServeSettings(host="0.0.0.0", callers=callers, token="one-of-the-command-line")
    assert settings.caller_of("long-enough") == Caller("a")
    assert settings.caller_of("one-of-the-command-line") == Caller("token")
    assert settings.caller_of("") is None
    assert ANYBODY.indexes is None  # and is met by open addresses alone, where tokens are needed
