"""Removed text leaves the disk while servers run, and when they end: real processes, and their signals."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

pytest.importorskip("starlette", reason="needs the extra serve")

from kraq_dspy import Document, Index, Scope, Workspace, add_documents, remove_documents
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.asset.store.states import former_states
from kraq_dspy.workspace.newest_state import UNDER_WAY
from tests.conftest import WarmShell
from tests.kept import kept_index
from tests.warm import WarmProcess

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

PATIENCE_S = 120
SECRET = "ZQX4411"
TEXTS = {"safe": f"Nora Bell keeps the safe at Lurr. Its code is {SECRET}.", "canteen": "Karl Voss runs the canteen."}


def made(path: Path, *labels: str) -> Path:
    return kept_index([Document(name, name, text, labels=labels) for name, text in TEXTS.items()], path)


def traces(path: Path) -> list[str]:
    """The files with the secret, of those that are there: a server may remove a former state meanwhile."""
    holding = []
    for folder, _, names in os.walk(path):  # which passes over a folder that is gone, and rglob does not
        for file in (Path(folder, name) for name in names):
            with suppress(FileNotFoundError):
                if SECRET.encode() in file.read_bytes():
                    holding.append(str(file.relative_to(path)))
    return holding


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


@contextmanager
def started(kraq: WarmShell, *words: str | Path, says: str) -> Iterator[tuple[WarmProcess, str]]:
    """A running server, and the first line of its output or errors that begins so."""
    process = kraq.start(*words, "--port", "0")

    def lines() -> list[str]:
        return [line for line in "".join(process.output()).splitlines() if line.startswith(says)]

    try:
        wait_until(lambda: process.poll() is not None or bool(lines()))
        yield process, lines()[0]
    finally:
        process.kill()


@pytest.mark.parametrize("scope", [(), ("--scope", "staff"), ("--owner",)])
def test_a_server_that_nobody_asks_leaves_the_former_state(
    scope: tuple[str, ...], tmp_path: Path, kraq: WarmShell
) -> None:
    path = made(tmp_path / "a.kraq", *(["staff"] if scope else []))
    with started(kraq, "serve", path, *scope, says="http") as (_, line):
        address = line.split()[0]
        asked = httpx.post(f"{address}/api/ask", json={"question": "What is the code of the safe?"}, timeout=PATIENCE_S)
        assert asked.status_code == 200
        remove_documents(path, ["safe"])
        wait_until(lambda: not traces(path))
        assert httpx.get(f"{address}/api/documents/safe").status_code == 404


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_server_that_ends_leaves_nothing_that_was_removed(
    end: signal.Signals, tmp_path: Path, kraq: WarmShell
) -> None:
    path = made(tmp_path / "a.kraq")
    with started(kraq, "serve", path, says="http") as (process, _):
        process.send_signal(signal.SIGSTOP)  # so that it does not move on before
        remove_documents(path, ["safe"])
        assert traces(path)
        [holders] = former_states(path).values()
        if sys.platform == "linux":
            assert [holder.split(" (")[0] for holder in holders] == [f"process {process.pid}"]
        process.send_signal(end)
        process.send_signal(signal.SIGCONT)
        process.wait(PATIENCE_S)
    if end == signal.SIGKILL:  # it could do nothing; the next one that reads the index does
        Index.open(path).close()
    assert not traces(path)


def test_a_server_of_agents_leaves_the_former_state_while_it_runs(tmp_path: Path, kraq: WarmShell) -> None:
    pytest.importorskip("mcp", reason="needs the extra mcp")
    path = made(tmp_path / "a.kraq")
    with started(kraq, "mcp", path, "--http", says="MCP: "):
        remove_documents(path, ["safe"])
        wait_until(lambda: not traces(path))


THAT_NEVER_MOVES_ON = """
import sys
from contextlib import nullcontext
from kraq_dspy.workspace import newest_state

newest_state.moving_on = lambda move_on: nullcontext()
for name in [name for name in sys.modules if name.startswith("kraq_dspy.apps.serve")]:
    del sys.modules[name]  # those that the shell imported have the former function

from kraq_dspy.apps.cli import main
sys.argv = ["kraq", *sys.argv[1:]]
main()
"""
"""`kraq`, where nothing but its end gives a former state back."""


def require_given_back_at_the_end(path: Path, end: Callable[[], object]) -> None:
    """Look at what is on the disk as it is: whoever opens the index, or asks for its states, removes what nobody holds,
    and would do the server's part."""
    remove_documents(path, ["safe"])
    assert traces(path)
    end()
    assert not traces(path)


@pytest.mark.parametrize(
    ("words", "started"),
    [(("serve",), "http"), (("mcp", "--http"), "MCP: ")],
    ids=["serve", "agents"],
)
def test_the_end_of_a_server_gives_the_former_state_back(
    words: tuple[str, ...], started: str, tmp_path: Path, kraq: WarmShell
) -> None:
    if words[0] == "mcp":
        pytest.importorskip("mcp", reason="needs the extra mcp")
    path = made(tmp_path / "a.kraq")
    process = kraq.python(THAT_NEVER_MOVES_ON, words[0], path, *words[1:], "--port", "0")
    try:
        wait_until(lambda: process.poll() is not None or started in "".join(process.output()))

        def end() -> None:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)

        require_given_back_at_the_end(path, end)
    finally:
        process.kill()


def test_the_end_of_a_server_over_standard_input_gives_the_former_state_back(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="needs the extra mcp")
    path = made(tmp_path / "a.kraq")
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    process = subprocess.Popen(
        [sys.executable, "-c", THAT_NEVER_MOVES_ON, "mcp", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(hello) + "\n")
        process.stdin.flush()
        assert "serverInfo" in process.stdout.readline()

        def end() -> None:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)

        require_given_back_at_the_end(path, end)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells who holds a lock")
def test_remove_says_who_still_holds_what_was_removed(tmp_path: Path, kraq: WarmShell) -> None:
    path = made(tmp_path / "a.kraq")
    with Index.open(path):
        ended = kraq("remove", path, "safe")
        assert ended.returncode == 0
        said = " ".join((ended.stdout + ended.stderr).split())
        assert f"process {os.getpid()}" in said
        assert "states/1" in said
    assert "still in" not in kraq("remove", made(tmp_path / "b.kraq"), "safe").stderr


def test_a_state_stays_while_a_request_reads_it(tmp_path: Path) -> None:
    path = made(tmp_path / "a.kraq", "staff")
    served = ServedIndex("a", Workspace.open(path))
    staff = served.scoped(Scope(["staff"]))
    with UNDER_WAY.one():
        before = staff.index
        remove_documents(path, ["safe"])
        served.move_on()
        assert SECRET in before.get(Document, ["safe"])[0].text
    served.move_on()
    assert not traces(path)
    assert staff.index.ids(Document) == ["canteen"]
    served.close()


def test_labels_that_come_while_it_serves_count_from_then_on(tmp_path: Path) -> None:
    """Who has the label is answered without a restart; who has none is not."""
    from starlette.testclient import TestClient

    from kraq_dspy.apps.serve.app import make_app
    from kraq_dspy.apps.serve.callers import Callers
    from kraq_dspy.apps.serve.serve_settings import ServeSettings

    (tmp_path / "tokens.toml").write_text(
        '[[token]]\nname = "staff"\ntoken = "staff-token"\nlabels = ["staff"]\n'
        '[[token]]\nname = "x"\ntoken = "no-labels"\n'
    )
    path = made(tmp_path / "a.kraq")
    served = {"a": ServedIndex("a", Workspace.open(path))}
    settings = ServeSettings(callers=Callers(tmp_path / "tokens.toml", ["a"]))
    with TestClient(make_app(served, settings), base_url="http://127.0.0.1") as client:

        def status(token: str) -> int:
            return client.get("/api/questions", headers={"Authorization": f"Bearer {token}"}).status_code

        assert (status("staff-token"), status("no-labels")) == (200, 200)
        add_documents(path, [Document("new", "New", "Ida Holm feeds the seals.", labels=("staff",))])
        assert (status("staff-token"), status("no-labels")) == (200, 403)
    served["a"].close()
