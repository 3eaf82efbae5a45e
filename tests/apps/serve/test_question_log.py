"""Tests the log of questions: what is kept of them and what is not, and who may read it."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dspy.utils.dummies import DummyLM
from starlette.testclient import TestClient

from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.question_log import AskedLog
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval import read_questions
from tests.apps.serve.conftest import open_all


@pytest.fixture
def client(poets: Path, tmp_path: Path) -> Iterator[TestClient]:
    lm = DummyLM([{"answer": "Lord Byron"}] * 9)
    with open_all(poets, models={"default": lm}) as indexes:
        app = make_app(indexes, ServeSettings(), question_log=AskedLog(tmp_path / "asked.jsonl"))
        with TestClient(app, "http://localhost") as opened:
            yield opened


def kept(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "asked.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("stream", [False, True])
def test_a_question_is_kept_without_its_answer_and_thanks_are_not(
    client: TestClient, tmp_path: Path, stream: bool
) -> None:
    for question in ("Who wrote Don Juan?", "Thanks!"):
        body = {"question": question, "program": "traditional", "stream": stream}
        assert client.post("/api/ask", json=body).status_code == 200

    [line] = kept(tmp_path)
    assert line.keys() == {"question", "index", "time", "refused"}
    assert (line["question"], line["index"], line["refused"]) == ("Who wrote Don Juan?", "poets", False)
    assert [each.question for each in read_questions(tmp_path / "asked.jsonl")] == ["Who wrote Don Juan?"]


def test_a_chat_s_question_is_kept_and_lines_can_be_taken_out_meanwhile(client: TestClient, tmp_path: Path) -> None:
    def chat(text: str) -> None:
        message = {"role": "user", "content": text}
        assert client.post("/v1/chat/completions", json={"model": "poets", "messages": [message]}).status_code == 200

    chat("Who wrote Don Juan?")
    (tmp_path / "asked.jsonl").unlink()
    chat("Who met Ada Lovelace?")

    assert [line["question"] for line in kept(tmp_path)] == ["Who met Ada Lovelace?"]


def test_a_server_that_was_not_told_to_keeps_nothing(client_of: Any, tmp_path: Path) -> None:
    assert client_of().post("/api/ask", json={"question": "Who wrote Don Juan?"}).status_code == 200
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="limits are those of POSIX")
def test_a_line_of_which_the_disk_takes_a_part_leaves_nothing(tmp_path: Path) -> None:
    import resource

    log = AskedLog(tmp_path / "asked.jsonl")
    log.note("Why?", index="x", refused=True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "asked.jsonl").stat().st_size + 9, limits[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            log.note("How?", index="x", refused=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    log.note("When?", index="x", refused=True)

    assert [line["question"] for line in kept(tmp_path)] == ["Why?", "When?"]


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_the_log_is_private_and_one_that_others_may_read_is_refused(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        AskedLog(tmp_path / "asked.jsonl").note("Why?", index="x", refused=True)
        (tmp_path / "open.jsonl").write_text("")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "asked.jsonl").stat().st_mode) == 0o600
    with pytest.raises(ConfigError, match=r"its mode is 644; expected 600.*chmod 600"):
        AskedLog(tmp_path / "open.jsonl")
    with pytest.raises(ConfigError, match="cannot be written"):
        AskedLog(tmp_path / "none" / "asked.jsonl")


@pytest.mark.skipif(os.name != "posix", reason="modes and pipes are those of POSIX")
def test_nothing_is_written_to_a_file_that_took_its_place_and_that_others_may_read(tmp_path: Path) -> None:
    log = AskedLog(tmp_path / "asked.jsonl")
    log.note("Why?", index="x", refused=True)
    shorter = tmp_path / "shorter.jsonl"
    shorter.write_text("")
    shorter.chmod(0o644)
    shorter.replace(tmp_path / "asked.jsonl")
    with pytest.raises(OSError, match="others may read it"):
        log.note("How?", index="x", refused=True)
    assert kept(tmp_path) == []

    (tmp_path / "asked.jsonl").chmod(0o600)
    log.note("When?", index="x", refused=True)
    assert [line["question"] for line in kept(tmp_path)] == ["When?"]


@pytest.mark.skipif(os.name != "posix", reason="modes and pipes are those of POSIX")
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="cannot be written"):
        AskedLog(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(ConfigError, match="no file but a pipe"):
            AskedLog(tmp_path / "pipe")
    finally:
        os.close(reader)
