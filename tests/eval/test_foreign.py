"""A system elsewhere is asked by HTTP, command or MCP; what it finds is judged by its text, and a fault is named."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kraq_dspy.errors import ConfigError
from kraq_dspy.eval import evaluate
from kraq_dspy.eval.foreign import ForeignSystem, found_documents, read_foreign
from kraq_dspy.eval.reports.grids import grids
from kraq_dspy.eval.rows import forget_failed
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace
from tests.conftest import WarmShell
from tests.kept import kept_index

TEXTS = {"mill": "The mill at Lurr was built by Nora Bell in 1934.", "inn": "The inn at Hald opens at noon on Sundays."}
ROWS = [
    {"id": "q1", "question": "Who built the mill at Lurr?", "answer": "Nora Bell", "supporting_ids": ["mill"]},
    {"id": "q2", "question": "When does the inn at Hald open?", "answer": "noon", "supporting_ids": ["inn"]},
]


class Handler(BaseHTTPRequestHandler):
    """Finds the text about the mill, whatever is asked; a path names another fault each."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = f"Before. {TEXTS['mill']} After."
        replies = {
            "/search": (200, json.dumps({"hits": [{"text": text}], "k": asked.get("k")})),
            "/chat": (200, json.dumps({"choices": [{"message": {"content": "Nora Bell"}}]})),
            "/broken": (200, "<html>"),
            "/empty": (200, "{}"),
            "/nothing": (200, '{"hits": []}'),
            "/down": (503, "busy"),
        }
        status, body = replies[self.path]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    path = tmp_path_factory.mktemp("foreign") / "x.kraq"
    kept_index([Document(name, name.title(), text) for name, text in TEXTS.items()], path)
    with Workspace.open(path) as opened:
        yield opened


def test_what_an_endpoint_finds_is_judged_by_its_text(server: str, space: Workspace) -> None:
    system = ForeignSystem(url=f"{server}/search", body={"question": "{question}", "k": 5}, texts="hits.*.text")

    result = evaluate({"docs": system}, ROWS, ["recall@5"], space=space)

    assert {row.question_id: row.metrics["recall@5"] for row in result.rows} == {"q1": 1.0, "q2": 0.0}


def test_a_search_that_finds_nothing_has_missed_and_not_failed(server: str, space: Workspace) -> None:
    system = ForeignSystem(url=f"{server}/nothing", body={"q": "{question}"}, texts="hits.*.text")

    result = evaluate({"docs": system}, ROWS, ["recall@5"], space=space)

    assert [(row.metrics.get("recall@5"), row.failure) for row in result.rows] == [(0.0, None), (0.0, None)]


def test_a_url_without_paths_is_asked_as_a_chat(server: str, space: Workspace) -> None:
    result = evaluate({"chat": ForeignSystem(url=f"{server}/chat")}, ROWS[:1], ["exact_match"], space=space)

    assert result.mean("exact_match") == 1.0


@pytest.mark.parametrize(
    ("path", "said"),
    [("broken", "is no JSON"), ("empty", "is empty"), ("down", "status 503"), ("", "refused the connection")],
)
def test_a_fault_is_named_in_the_row_of_its_question(server: str, space: Workspace, path: str, said: str) -> None:
    url = f"{server}/{path}" if path else "http://127.0.0.1:1/x"
    good = ForeignSystem(url=f"{server}/search", body={"q": "{question}"}, texts="hits.*.text")
    bad = ForeignSystem(url=url, body={"q": "{question}"}, texts="hits.*.text")

    rows = evaluate({"good": good, "bad": bad}, ROWS, ["recall@5"], space=space).rows

    assert [said in (row.failure or "") for row in rows if row.system == "bad"] == [True, True]
    assert [row.failure for row in rows if row.system == "good"] == [None, None]


def test_a_server_that_dies_in_the_middle_is_counted_and_its_questions_are_asked_again(
    space: Workspace, tmp_path: Path
) -> None:
    asked: list[str] = []

    class Dying(Handler):
        """Ends the server with its first answer."""

        def do_POST(self) -> None:
            asked.append(self.path)
            if serving.is_mortal:
                serving.shutdown()  # else its thread asks for the closed socket without an end
                serving.socket.close()
            super().do_POST()

    class Serving(ThreadingHTTPServer):
        is_mortal = True

        def handle_error(self, *_: object) -> None:
            """Say nothing."""

    serving = Serving(("127.0.0.1", 0), Dying)
    port = serving.server_port
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    system = ForeignSystem(url=f"http://127.0.0.1:{port}/search", body={"q": "{question}"}, texts="hits.*.text")

    first = evaluate({"docs": system}, ROWS, ["recall@5"], space=space, out=tmp_path, concurrency=1)

    assert [row.failure is None for row in first.rows] == [True, False]
    assert "refused the connection" in str(first.rows[1].failure)
    [reasons] = [grid for grid in grids(first.summary) if grid.title == "What failed"]
    assert reasons.rows[0][:2] == ("docs", "1")
    assert "--retry-failed" in reasons.note

    serving = Serving(("127.0.0.1", port), Dying)
    serving.is_mortal = False
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    assert forget_failed(tmp_path) == 1
    again = evaluate({"docs": system}, ROWS, ["recall@5"], space=space, out=tmp_path, concurrency=1)
    serving.shutdown()
    serving.server_close()

    assert {row.question_id: row.metrics["recall@5"] for row in again.rows} == {"q1": 1.0, "q2": 0.0}
    assert len(asked) == 2  # what was answered is not asked again


def test_a_command_reads_the_question_and_a_slow_one_is_named(space: Workspace) -> None:
    say = f"{sys.executable} -c 'print(\"{TEXTS['inn']}\")'"
    slow = f"{sys.executable} -c 'import time; time.sleep(9)'"
    systems = {"say": ForeignSystem(command=say), "slow": ForeignSystem(command=slow, timeout=0.2)}

    rows = evaluate(systems, ROWS[1:], ["recall@5"], space=space).rows

    assert [row.metrics.get("recall@5") for row in rows] == [1.0, None]
    assert rows[1].failure is not None
    assert "no reply within 0.2 s" in rows[1].failure


def test_the_command_asks_it_alone_or_beside_what_is_named_of_the_index(
    kraq: WarmShell, space: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "say.py").write_text(f"print({TEXTS['inn']!r})")
    (tmp_path / "docs.toml").write_text(f"command = '{sys.executable} say.py'")
    (tmp_path / "asked.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    words = ["eval", str(space.index.path), "asked.jsonl", "--system", "docs.toml", "-m", "recall@5", "--json"]

    alone = kraq(*words, cwd=tmp_path)
    beside = kraq(*words, "--retrieval-only", "-r", "bm25", cwd=tmp_path)

    for done, names in ((alone, ["docs"]), (beside, ["docs", "bm25"])):
        assert done.returncode == 0, done.stderr
        assert [system["name"] for system in json.loads(done.stdout)["runs"][0]["systems"]] == names


def test_a_tool_of_an_mcp_server_is_asked(space: Workspace, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    script = tmp_path / "server.py"
    script.write_text(
        "from mcp.server.mcpserver import MCPServer\nserver = MCPServer('x')\n\n"
        f"@server.tool()\ndef find(query: str) -> str:\n    return {TEXTS['mill']!r}\n\nserver.run('stdio')\n"
    )
    system = ForeignSystem(mcp=f"{sys.executable} {script}", tool="find")

    result = evaluate({"mcp": system}, ROWS, ["recall@5"], space=space, concurrency=1)

    assert [row.metrics.get("recall@5") for row in result.rows] == [1.0, 0.0]


def test_a_text_that_found_several_documents_counts_for_each_and_a_part_of_a_statement_for_none() -> None:
    statements = {"a": [frozenset(["mill", "lurr", "nora", "bell"])], "b": [frozenset(["inn", "hald"])]}

    assert found_documents(["mill Lurr Nora Bell, inn Hald", "mill Lurr"], statements)[1] == ["a", "b", "text 1"]


def test_a_file_that_says_too_little_or_what_is_not_known_is_refused(tmp_path: Path) -> None:
    for text, said in (("urll = 'x'", "did you mean 'url'"), ("", "there is none"), ("mcp = 'x'", "name it")):
        (tmp_path / "x.toml").write_text(text)
        with pytest.raises(ConfigError, match=said):
            read_foreign(tmp_path / "x.toml")
