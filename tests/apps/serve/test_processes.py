"""Runs `kraq serve` as real processes, with Ctrl-C in the middle of an answer."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from stand_in import stand_in

pytest.importorskip("starlette", reason="needs the extra serve")


from kraq_dspy import Index
from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.asset.store.own_files import lock_holders
from kraq_dspy.records import Document
from tests.kept import kept_index

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}
PATIENCE_S = 120
LONG_MS = 10_000.0 * PATIENCE_S
QUESTION = {"question": "Who wrote Don Juan?", "program": "traditional"}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the encoder that the command line loads."""
    out = tmp_path_factory.mktemp("processes") / "people.kraq"
    texts = {"Byron": "Lord Byron wrote Don Juan in Italy.", "Ada": "Ada Lovelace was the daughter of Lord Byron."}
    return kept_index([Document(name, name, text) for name, text in texts.items()], out)


@contextmanager
def kraq(*words: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kraq_dspy", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield process, next(line for line in process.stdout if line.startswith("http")).split()[0]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def require_ended_by_ctrl_c(process: subprocess.Popen[str], address: str, index: Path) -> None:
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "Stopping" in errors or "Interrupted." in errors
    socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))).close()
    Index.open(index, write=True).close()


@contextmanager
def streaming(address: str) -> Iterator[None]:
    """Reads an answer until its model is asked."""
    body = {**QUESTION, "stream": True}
    with httpx.stream("POST", f"{address}/api/ask", json=body, timeout=PATIENCE_S) as answer:
        lines = answer.iter_lines()  # as long as this lives, the client stays
        assert 'data: {"stage": "answering"}' in lines
        yield


@pytest.mark.parametrize("command", [["serve"]])
def test_ctrl_c_in_the_middle_of_an_answer_ends_it_without_a_traceback_and_frees_port_and_index(
    command: list[str], people: Path
) -> None:
    with stand_in(latency_ms=LONG_MS) as model:
        words = [*command, people, "--port", "0", "--lm", "hosted_vllm/stand-in", "--api-base", model.url]
        with kraq(*words) as (process, address), streaming(address):
            if sys.platform == "linux":
                [state] = (people / "states").iterdir()
                assert lock_holders(state / MANIFEST) == [f"process {process.pid} (kraq serve)"]
            require_ended_by_ctrl_c(process, address, people)
