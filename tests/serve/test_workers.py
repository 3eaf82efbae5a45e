"""Several processes behind one port: without an index for what happens to them, and as `kraq serve --workers`."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from starlette.testclient import TestClient

from kraq_dspy.errors import ConfigError
from kraq_dspy.serve.app import make_app
from kraq_dspy.serve.settings import ServeSettings
from kraq_dspy.serve.worker_memory import shared_by
from tests.serve.conftest import open_all

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc")

PID_SERVER = Path(__file__).with_name("pid_server.py")
PATIENCE_S = 60


@contextmanager
def pid_server(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(PID_SERVER), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline().removesuffix(" ready\n"))


def pid_that_answers(port: int) -> int:
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
        return int(connection.recv(20))


def pids_that_answer(port: int, *, until: int) -> set[int]:
    """Of this many workers; they come to a connection by chance."""
    pids: set[int] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(pids) < until and time.monotonic() < deadline:
        pids.add(pid_that_answers(port))
    return pids


def require_free(port: int) -> None:
    socket.create_server(("127.0.0.1", port)).close()


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until_gone(pids: set[int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not all(map(is_gone, pids)):
        assert time.monotonic() < deadline, f"{pids} still run"
        time.sleep(0.02)


def test_all_workers_answer_and_one_that_is_killed_is_replaced() -> None:
    with pid_server("2") as process:
        port = port_of(process)
        before = pids_that_answer(port, until=2)
        assert len(before) == 2
        killed, other = before
        os.kill(killed, signal.SIGKILL)
        assert process.stdout is not None
        assert process.stdout.readline() == f"ended {killed}\n"
        after = pids_that_answer(port, until=2)
        while killed in after:  # answered before it was killed
            after = pids_that_answer(port, until=2)
        assert other in after
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert f"Worker {1 if f'Worker 1 (process {killed})' in errors else 2} (process {killed}) was ended by SIGKILL" in (
        errors
    )


def test_ctrl_c_reaches_a_terminals_whole_group_and_ends_all_without_a_traceback() -> None:
    with pid_server("3") as process:
        port = port_of(process)
        pids = pids_that_answer(port, until=3)
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGINT  # Python's own end by KeyboardInterrupt
    assert errors.count("Traceback") == 1  # that of the script, which does not catch it
    assert "Process worker" not in errors
    assert "ended" not in output
    wait_until_gone(pids)
    require_free(port)


def test_workers_end_with_a_first_process_that_was_killed() -> None:
    with pid_server("2") as process:
        port = port_of(process)
        pids = pids_that_answer(port, until=2)
        process.kill()
        process.wait()
        wait_until_gone(pids)
        require_free(port)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("refuse", "ConfigError: This cannot be served. Serve something else."),
        ("break", "KraqError: A worker was ended by SIGKILL while it started."),
    ],
)
def test_workers_that_cannot_start_end_the_server_with_the_reason(way: str, message: str) -> None:
    with pid_server("2", way) as process:
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert message in errors


def test_workers_share_what_a_client_may_ask(poets: Path) -> None:
    settings = ServeSettings(rate=0.1)  # a burst of one
    with open_all(poets) as indexes, shared_by(2, 1) as shared:
        one, other = (TestClient(make_app(indexes, settings, shared), "http://localhost") for _ in range(2))
        assert one.get("/api/status").status_code == 200
        assert other.get("/api/status").status_code == 429
        assert other.get("/health").status_code == 200


def test_what_may_be_under_way_is_divided() -> None:
    settings = ServeSettings(workers=3, at_once=8, waiting=64, connections=512)
    parts = [settings.of_worker(number) for number in range(3)]
    assert [part.at_once for part in parts] == [3, 3, 2]
    assert sum(part.waiting for part in parts) == 64
    assert sum(part.connections for part in parts) == 512
    with pytest.raises(ConfigError, match="9 workers divide the 8 questions"):
        ServeSettings(workers=9)
