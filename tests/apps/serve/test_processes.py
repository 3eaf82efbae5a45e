"""`kraq serve` and `kraq explore` as real processes: Ctrl-C in the middle of an answer, and workers that share."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from stand_in import stand_in

pytest.importorskip("starlette", reason="needs the extra serve")

from uvicorn.config import STARTUP_FAILURE

from kraq_dspy.apps.cli.logs import Logs
from kraq_dspy.apps.cli.options import Limits, Models
from kraq_dspy.apps.cli.serving import Worker
from kraq_dspy.apps.serve.guard import ServeSettings
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.index.build import build_index
from kraq_dspy.records import Document

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}
PATIENCE_S = 120
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the workers in /proc")
LONG_MS = 10_000.0 * PATIENCE_S
QUESTION = {"question": "Who wrote Don Juan?", "program": "traditional"}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the encoder that the command line loads."""
    out = tmp_path_factory.mktemp("processes") / "people.kraq"
    texts = {"Byron": "Lord Byron wrote Don Juan in Italy.", "Ada": "Ada Lovelace was the daughter of Lord Byron."}
    build_index([Document(name, name, text) for name, text in texts.items()], out)
    return out


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
            os.killpg(process.pid, signal.SIGKILL)  # also workers that a test has stopped, which hold the pipes open
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


@pytest.mark.parametrize("command", [["serve"], ["explore", "--no-browser"]])
def test_ctrl_c_in_the_middle_of_an_answer_ends_it_without_a_traceback_and_frees_port_and_index(
    command: list[str], people: Path
) -> None:
    with stand_in(latency_ms=LONG_MS) as model:
        words = [*command, people, "--port", "0", "--lm", "hosted_vllm/stand-in", "--api-base", model.url]
        with kraq(*words) as (process, address), streaming(address):
            require_ended_by_ctrl_c(process, address, people)


@linux
def test_workers_divide_the_limit_on_calls_count_together_and_end_together(people: Path) -> None:
    with stand_in() as model:
        words = ["--workers", "2", "--max-calls", "2", "--lm", "hosted_vllm/stand-in", "--api-base", model.url]
        with kraq("serve", people, "--port", "0", *words) as (process, address):
            first, second = workers_of(process.pid, 2)
            for each, other in ((first, second), (second, first)):
                os.kill(other, signal.SIGSTOP)  # so that this one answers
                answered = httpx.post(f"{address}/api/ask", json=QUESTION, timeout=PATIENCE_S)
                assert answered.status_code == 200, answered.text
                refused = httpx.post(f"{address}/api/ask", json=QUESTION, timeout=PATIENCE_S)
                assert (refused.status_code, refused.json()["error"]["code"]) == (503, "budget")
                os.kill(other, signal.SIGCONT)
                assert each not in (process.pid, other)
            wait_for_metric(address, 'kraq_requests_total{method="POST",route="/api/ask",status="200"} 2.0')
            wait_for_metric(address, 'kraq_requests_total{method="POST",route="/api/ask",status="503"} 2.0')
            wait_for_metric(address, 'kraq_model_calls_total{index="people"} 2.0')
            require_ended_by_ctrl_c(process, address, people)
            wait_until_gone({first, second})


@linux
def test_a_worker_that_is_killed_is_replaced_and_workers_end_with_a_first_process_that_is_killed(people: Path) -> None:
    with kraq("serve", people, "--port", "0", "--workers", "2") as (process, address):
        before = workers_of(process.pid, 2)
        os.kill(before[0], signal.SIGKILL)
        wait_until_gone({before[0]})
        after = workers_of(process.pid, 2, but=before[0])
        assert before[1] in after
        assert httpx.get(f"{address}/health", timeout=PATIENCE_S).status_code == 200
        process.kill()
        process.wait()
        wait_until_gone(set(after))


def test_workers_that_cannot_open_their_index_end_the_server_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = Worker((tmp_path / "none.kraq",), Models(), Limits(), ServeSettings(workers=2), Logs.here())
    with pytest.raises(SystemExit) as ended:
        nowhere()
    assert ended.value.code == STARTUP_FAILURE  # of which uvicorn makes an end of all, and no new worker
    assert "There is no index" in capsys.readouterr().err


def wait_for_metric(address: str, line: str) -> None:
    """A request is counted after its answer was sent."""
    until = time.monotonic() + PATIENCE_S
    while line not in httpx.get(f"{address}/metrics", timeout=PATIENCE_S).text.splitlines():
        assert time.monotonic() < until
        time.sleep(0.05)


def workers_of(pid: int, count: int, but: int = 0) -> list[int]:
    """The process ids of this many workers that answer, without one that was killed."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        with suppress(FileNotFoundError):  # one has just ended
            workers = [int(each) for each in children if "spawn_main" in Path(f"/proc/{each}/cmdline").read_text()]
            if len(set(workers) - {but}) == count:
                return sorted(set(workers) - {but})
        time.sleep(0.1)
    raise AssertionError(f"The workers of {pid} do not start.")


def wait_until_gone(pids: set[int]) -> None:
    until = time.monotonic() + PATIENCE_S
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < until, f"{pids} still run"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
