"""Connects the SDK's own client to the server: in this process, over stdio with a real one, and over HTTP."""

import asyncio
import json
import os
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

import dspy
import httpx
import pytest

from tests.conftest import KeywordEmbedder, WarmShell

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer

from kraq_dspy import Index, add_documents
from kraq_dspy.apps.mcp.server import make_server, without_places
from kraq_dspy.apps.mcp.tools import IndexTools
from kraq_dspy.errors import ServerDownError
from kraq_dspy.records import Document
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program
from tests.whole_program import app

TOOLS = {"ask", "search", "starters", "questions_about", "community", "neighbours_of", "read_document"}
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}
KRAQ = [sys.executable, "-m", "kraq_dspy"]
TOKEN = "correct-horse-battery"


@pytest.fixture(scope="module")
def tools(people: Path) -> Iterator[IndexTools]:
    with Workspace.open(people) as space:
        yield IndexTools(space, choose_program("traditional", options={"k": 3}))


@pytest.fixture(scope="module")
def server(tools: IndexTools) -> MCPServer:
    return make_server(tools)


def call(server: MCPServer, tool: str, **arguments: Any) -> Any:
    async def body() -> Any:
        async with Client(server) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(body())


def test_tools_describe_themselves_and_every_argument(server: MCPServer) -> None:
    async def body() -> Any:
        async with Client(server) as client:
            return (await client.list_tools()).tools, client.instructions

    tools, instructions = asyncio.run(body())
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.description
        assert tool.annotations.read_only_hint
        assert tool.output_schema
        undescribed = [name for name, about in tool.input_schema["properties"].items() if "description" not in about]
        assert undescribed == []
    assert "'people': 3 documents" in instructions


@pytest.mark.parametrize(
    ("tool", "needed", "optional"),
    [
        ("search", {"query": "Ada"}, ("limit", "offset", "retriever", "document_ids")),
        ("questions_about", {}, ("topic", "limit", "offset", "level")),
        ("ask", {"question": "Who met Ada?"}, ("program", "evidence", "history", "no_refuse")),
    ],
)
def test_null_means_that_an_argument_was_left_out(
    server: MCPServer, tool: str, needed: dict[str, Any], optional: tuple[str, ...]
) -> None:
    without, with_null = call(server, tool, **needed), call(server, tool, **needed, **dict.fromkeys(optional))
    assert not with_null.is_error
    same = ("passages", "questions", "answer")
    assert [without.structured_content.get(name) for name in same] == [
        with_null.structured_content.get(name) for name in same
    ]


def test_null_for_an_argument_that_is_needed_is_an_error(server: MCPServer) -> None:
    assert call(server, "search", query=None).is_error


def test_an_index_that_is_being_built_says_so(tmp_path: Path, keyword_embedder: type[KeywordEmbedder]) -> None:
    embedder = keyword_embedder("sea")
    Index.create(tmp_path / "new.kraq", Settings(), encoder_name=embedder.name, encoder_dimension=2).close()

    async def body(server: MCPServer) -> str:
        async with Client(server) as client:
            return str(client.instructions)

    with Workspace.open(tmp_path / "new.kraq", embedder=embedder) as space:
        server = make_server(IndexTools(space, choose_program("traditional")))
        assert "Its build is not complete" in asyncio.run(body(server))


def test_an_agent_sees_what_a_build_has_completed_meanwhile(people_elsewhere: Path) -> None:
    with Workspace.open(people_elsewhere) as space:
        server = make_server(IndexTools(space, choose_program("traditional", options={"k": 3})))
        assert "Faraday" not in str(call(server, "neighbours_of", entity="Lord Byron").content)
        text = "Michael Faraday met Lord Byron in Venice. Michael Faraday built a motor."
        add_documents(people_elsewhere, [Document("faraday", "Faraday", text)])
        assert "Michael Faraday" in str(call(server, "neighbours_of", entity="Lord Byron").content)
        assert call(server, "read_document", document_id="faraday").structured_content["text"] == text
        assert "Faraday" in call(server, "ask", question="Who built a motor?").structured_content["answer"]


def test_results_are_structured_and_the_same_as_text(server: MCPServer) -> None:
    result = call(server, "search", query="Don Juan", limit=1)
    assert not result.is_error
    assert result.structured_content["passages"][0]["title"] == "Lord Byron"
    assert json.loads(result.content[0].text) == result.structured_content


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("community", {"community_id": "nothing"}, "Ids come with `questions_about`"),
        ("search", {"query": "x", "limit": 0}, "greater than or equal to 1"),
        ("search", {}, "query"),
        ("ask", {"question": "Who?", "program": "graph-globl"}, "did you mean 'graph-global'?"),
    ],
)
def test_errors_are_errors_of_the_tool_with_the_way_out(
    server: MCPServer, people: Path, tool: str, arguments: dict[str, Any], says: str
) -> None:
    result = call(server, tool, **arguments)
    assert result.is_error
    assert says in result.content[0].text
    assert "Traceback" not in result.content[0].text
    assert str(people.parent) not in result.content[0].text


def test_a_model_that_cannot_be_reached_is_named_in_the_log_alone(
    server: MCPServer, tools: IndexTools, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def down(*_: Any, **__: Any) -> NoReturn:
        raise ServerDownError("http://10.0.0.7:8000/v1 cannot be reached.")

    monkeypatch.setattr(tools.space, "aask", down)
    result = call(server, "ask", question="Who?")
    assert result.is_error
    assert "`search` and `questions_about` need none" in result.content[0].text
    assert "10.0.0.7" not in result.content[0].text
    assert "10.0.0.7" in caplog.text


def test_a_fault_of_ours_tells_the_agent_nothing_of_this_machine(
    server: MCPServer, tools: IndexTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(*_: Any) -> NoReturn:
        raise RuntimeError("/home/ann/people.kraq is torn")

    monkeypatch.setattr(tools.space, "retriever", torn)
    result = call(server, "search", query="x")
    assert result.is_error
    assert result.content[0].text == "Error executing tool search"


def test_its_tools_are_those_of_a_dspy_agent(server: MCPServer) -> None:
    async def body() -> Any:
        async with Client(server) as client:
            tools = [dspy.Tool.from_mcp_tool(client, tool) for tool in (await client.list_tools()).tools]
            search = next(tool for tool in tools if tool.name == "search")
            return set(search.args), json.loads(await search.acall(query="Don Juan", limit=1))

    arguments, result = asyncio.run(body())
    assert arguments == {"query", "limit", "offset", "retriever", "document_ids"}
    assert result["passages"][0]["title"] == "Lord Byron"


def test_places_of_this_machine_are_cut_out_of_messages() -> None:
    assert without_places("'/home/ann/my notes/docs.kraq' is damaged") == "'docs.kraq' is damaged"
    assert (
        without_places("Run: kraq index /home/ann/docs.kraq, or kraq index")
        == "Run: kraq index docs.kraq, or kraq index"
    )
    assert without_places('open "../../x/y.db" again') == 'open "y.db" again'
    kept = "read and/or write 1/2 of kraq://documents at https://example.org/a/b"
    assert without_places(kept) == kept


NOISY = """
import os, sys
from kraq_dspy._internal.both_ways import blocking
from kraq_dspy.programs.traditional import TraditionalRAG
from kraq_dspy.spec import NoOptions, ProgramSpec
from kraq_dspy.workspace.registry import PROGRAMS

class Noisy(TraditionalRAG):
    async def aforward(self, question):
        print("from Python", flush=True)
        print("without an end", end="")
        os.write(1, b"from C\\n")
        os.system("echo from a child")
        return await super().aforward(question)

    forward = blocking(aforward)

def make(space, part, options):
    print("while loading")
    os.write(1, b"loading in C\\n")
    return Noisy(part, k=2)

PROGRAMS.own["noisy"] = ProgramSpec("noisy", "Prints.", make, "Noisy", NoOptions, budget=lambda options: 2)

if __name__ == "__main__":
    from kraq_dspy.apps.cli import main
    main()
"""


def test_over_stdio_nothing_but_protocol_is_on_standard_output(people_elsewhere: Path, tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(textwrap.dedent(NOISY))
    recorded = tmp_path / "stdout"
    command = f"{sys.executable} {tmp_path / 'noisy.py'} mcp {people_elsewhere} --program noisy | tee {recorded}"
    parameters = StdioServerParameters(command="/bin/sh", args=["-c", command], env=ENVIRONMENT, cwd=tmp_path)

    async def body(errlog: TextIO) -> Any:
        async with Client(stdio_client(parameters, errlog=errlog)) as client:
            tools = (await client.list_tools()).tools
            answer = await client.call_tool("ask", {"question": "Who wrote Don Juan?"})
            wrong = await client.call_tool("read_document", {"document_id": "none"})
            return tools, answer, wrong

    with (tmp_path / "stderr").open("w") as errlog:
        tools, answer, wrong = asyncio.run(body(errlog))
    assert {tool.name for tool in tools} == TOOLS
    assert "Byron" in answer.structured_content["answer"]
    assert answer.structured_content["program"] == "noisy"
    assert wrong.is_error
    lines = recorded.read_text("utf-8").splitlines()
    assert len(lines) >= 4
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
    stderr = (tmp_path / "stderr").read_text("utf-8")
    for noise in ("while loading", "loading in C", "from Python", "from C", "from a child"):
        assert noise in stderr


def test_over_http_with_a_token_only_who_has_it_is_served(
    people_elsewhere: Path, kraq: WarmShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRAQ_TOKEN", TOKEN)
    process = kraq.start("mcp", people_elsewhere, "--http", "--port", "0", "--program", "traditional")
    try:
        while process.poll() is None and "MCP: " not in process.output()[1]:
            time.sleep(0.05)
        line = next(line for line in process.output()[1].splitlines() if line.startswith("MCP: "))
        url = line.removeprefix("MCP: ").partition(",")[0].strip()
        refused = httpx.post(url, json={})
        assert refused.status_code == 401
        assert "Bearer" in refused.json()["error"]["message"]
        assert httpx.post(url, json={}, headers={"Authorization": "Bearer wrong"}).status_code == 401
        bearing = {"Authorization": f"Bearer {TOKEN}"}
        elsewhere = httpx.post(url, json={}, headers={**bearing, "Host": "evil.example"})
        assert elsewhere.status_code == 421
        assert httpx.post(
            url, content=b"{" * 2_000_000, headers={**bearing, "Content-Type": "application/json"}
        ).is_error

        async def body() -> Any:
            import httpx2

            async with (
                httpx2.AsyncClient(headers=bearing, timeout=60) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                calls = [client.call_tool("search", {"query": f"Don Juan {n}", "limit": 1}) for n in range(8)]
                return await asyncio.gather(*calls, client.call_tool("ask", {"question": "Who wrote Don Juan?"}))

        *results, answer = asyncio.run(body())
        assert {each.structured_content["passages"][0]["title"] for each in results} == {"Lord Byron"}
        assert "Byron" in answer.structured_content["answer"]
    finally:
        process.kill()


def test_the_address_is_told_once_connections_are_taken(
    people_elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []

    def run_on(server: Any, listening: object) -> None:
        printed.append(capsys.readouterr().err)
        server._started()
        printed.append(capsys.readouterr().err)

    monkeypatch.setattr("kraq_dspy.apps.serve.server.Server.run_on", run_on)
    monkeypatch.setattr("kraq_dspy.apps.cli.mcp.at_once_at_the_end", lambda serve: serve())
    app(["mcp", str(people_elsewhere), "--http", "--port", "0"], standalone_mode=False)
    before, after = printed
    assert "http" not in before
    assert "MCP: http://127.0.0.1:" in after


def test_other_machines_are_not_served_without_a_token_and_no_index_is_a_message(
    kraq: WarmShell, people_elsewhere: Path
) -> None:
    open_to_all = kraq("mcp", people_elsewhere, "--http", "--host", "0.0.0.0")
    assert open_to_all.returncode == 2
    assert "KRAQ_TOKEN" in open_to_all.stderr
    missing = kraq("mcp", "nowhere.kraq")
    assert missing.returncode == 1
    assert "There is no index" in missing.stderr
    assert missing.stdout == open_to_all.stdout == ""
