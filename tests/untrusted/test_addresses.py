"""Tests that a server which somebody else's index or kraq.toml names is sent nothing: neither text nor a key."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import kraq_dspy
from kraq_dspy import add_documents, build_index, make_lm, resume_index, update_index
from kraq_dspy.asset import consent
from kraq_dspy.errors import KraqError, UntrustedError
from kraq_dspy.extend import load_embedder
from kraq_dspy.indexing.index.estimate import estimate_index
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings, Settings, StoreSettings
from kraq_dspy.workspace import Workspace
from tests.kept import kept
from tests.whole_program import app

SECRET = "not-for-strangers"
STOLEN = "AWS_SECRET_ACCESS_KEY"
TEXT = "Ada Lovelace met Charles Babbage in London. Charles Babbage built the Difference Engine with Ada Lovelace."


@dataclass
class Recorder:
    """A server that answers nothing useful, and keeps the path and the headers of every request."""

    root: str = ""
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    @property
    def keys(self) -> set[str]:
        """What came as a key, in any header."""
        return {value for _, headers in self.requests for value in headers.values() if SECRET in value}


@pytest.fixture
def server() -> Iterator[Recorder]:
    recorder = Recorder()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            recorder.requests.append((self.path, dict(self.headers)))
            message = {"role": "assistant", "content": "[[ ## answer ## ]]\nLondon\n\n[[ ## completed ## ]]"}
            reply: Any = {
                "id": "1",
                "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            }
            if "embeddings" in self.path:
                reply = {"data": [{"index": 0, "embedding": [1.0] * 384}]}
            body = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            return

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    recorder.root = f"http://127.0.0.1:{running.server_port}"
    yield recorder
    running.shutdown()
    running.server_close()


@pytest.fixture(autouse=True)
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who agreed to nothing yet, in an empty folder, with secrets in the environment."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in (STOLEN, "OPENAI_API_KEY", "QDRANT_API_KEY", "MY_KEY", "HOSTED_VLLM_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.setenv(name, f"{SECRET}-{name}")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def kraq(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def made_by_a_stranger(path: Path, **named: Any) -> Path:
    """An index whose manifests name what a stranger wrote into them: `named` by section."""
    kept(TEXT, partial(build_index, _corpus(path.parent)), path)
    rename(path, **named)
    return path


def _corpus(folder: Path) -> Path:
    file = folder / "corpus.txt"
    file.write_text(TEXT)
    return file


def rename(path: Path, **named: Any) -> None:
    for manifest in path.rglob("manifest.json"):
        fields = json.loads(manifest.read_text())
        for section, values in named.items():
            fields["settings"][section] |= values
        fields.pop("sum", None)  # a stranger makes it anew, or leaves it out
        manifest.write_text(json.dumps(fields))


def evil_role(server: Recorder, **more: Any) -> dict[str, Any]:
    role = {"model": "hosted_vllm/m", "api_base": server.url, "api_key_env": STOLEN, "retries": 0, **more}
    return {"roles": {"default": role}}


COMMANDS = [
    ["ask", "DIR", "Who met whom?"],
    ["ask", "DIR", "Who met whom?", "--program", "traditional", "--json"],
    ["ask", "DIR", "Who met whom?", "--program", "speculative"],
    ["ask", "DIR"],
    ["mcp", "DIR"],
    ["serve", "DIR", "--port", "0"],
    ["index", "--dry-run", "DIR"],
    ["index", "DIR"],
    ["update", "--add", "DIR", "corpus.txt"],
    ["update", "DIR", "corpus.txt"],
    ["remove", "DIR", "corpus.txt"],
    ["check", "DIR", "--repair"],
    ["precompute", "DIR"],
    ["precompute", "DIR", "qa-pairs"],
    ["precompute", "DIR", "raptor"],
    ["precompute", "DIR", "k2rag"],
    ["precompute", "DIR", "graph"],
    ["faq", "seed", "DIR"],
    ["faq", "seed", "DIR", "--of", "passages"],
    ["optimize", "answer", "--index", "DIR", "--dev", "dev.jsonl", "--out", "o.json"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_sends_anything_to_servers_that_an_index_names(
    words: list[str], server: Recorder, account: Path
) -> None:
    index = made_by_a_stranger(
        account / "x.kraq", **evil_role(server), store={"url": server.root, "api_key_env": STOLEN}
    )
    (account / "dev.jsonl").write_text('{"question": "Who?", "answer": "Ada"}\n')
    result = kraq(*(index if word == "DIR" else word for word in words))
    assert server.requests == []
    assert result.exit_code != 0, result.output
    assert isinstance(result.exception, UntrustedError), result.output + repr(result.exception)
    assert server.url in str(result.exception)


@pytest.mark.parametrize("command", ["questions", "status", "check"])
def test_commands_without_models_work_beside_a_named_model(command: str, server: Recorder, account: Path) -> None:
    index = made_by_a_stranger(account / "x.kraq", **evil_role(server))
    assert kraq(command, index).exit_code == 0
    assert server.requests == []


@pytest.mark.parametrize("command", [["check"], ["export", "--format", "jsonl", "--out", "o"]])
def test_a_store_that_an_index_names_is_not_asked(command: list[str], server: Recorder, account: Path) -> None:
    index = made_by_a_stranger(account / "x.kraq", store={"url": server.root, "api_key_env": STOLEN})
    kraq(command[0], index, *command[1:])
    assert server.requests == []


def test_each_kind_of_destination_is_asked_about(server: Recorder, account: Path) -> None:
    index = made_by_a_stranger(account / "x.kraq")
    for named in (
        evil_role(server),
        evil_role(server, api_key_env=None),
        evil_role(server, api_base=f"http://127.0.0.1:9/v1,{server.url}"),
        {"roles": {"default": {"model": "embedded"}, "judge": evil_role(server)["roles"]["default"]}},
        {"roles": {"default": {"model": "openai/gpt", "api_key_env": STOLEN, "api_base": None}}},
        {"roles": {"default": {"model": f"huggingface/{server.url}", "api_key_env": None, "api_base": None}}},
        {"encoder": {"api_base": server.url, "name": "minilm"}},
        {"encoder": {"api_base": server.url, "name": "minilm", "api_key_env": STOLEN}},
        {"encoder": {"name": r"\\stranger\share\model"}},
        {"run": {"ray_address": "stranger.example:6379"}},
    ):
        rename(index, **named)
        with pytest.raises(UntrustedError, match="Nothing was sent"):
            Workspace.open(index)
        for manifest in index.rglob("manifest.json"):
            fields = json.loads(manifest.read_text())
            fields["settings"]["roles"] = {}
            fields.pop("sum", None)
            manifest.write_text(json.dumps(fields))
        rename(index, **PLAIN)
    assert server.requests == []


PLAIN = {
    "roles": {"default": {"model": "embedded", "api_base": None, "api_key_env": None}},
    "encoder": {"api_base": None, "api_key_env": None, "name": "minilm"},
    "run": {"ray_address": None},
}


def test_python_asks_for_the_same_consent(server: Recorder, account: Path) -> None:
    index = made_by_a_stranger(account / "x.kraq", **evil_role(server, api_key_env=None))
    for use in (
        lambda: Workspace.open(index),
        lambda: update_index(index, "corpus.txt"),
        lambda: add_documents(index, "corpus.txt"),
        lambda: resume_index(index),
        lambda: estimate_index(index),
    ):
        with pytest.raises(UntrustedError):
            use()
    assert server.requests == []
    with Workspace.open(index, trust=True) as space:
        space.program("traditional")(question="Who?")
    assert server.requests
    with Workspace.open(index) as space:  # was remembered
        assert space.models.settings.role("answerer").api_base == server.url


def test_consent_is_for_one_index_and_for_what_it_named(server: Recorder, account: Path) -> None:
    index = made_by_a_stranger(account / "x.kraq", **evil_role(server, api_key_env=None))
    words: list[str | Path] = ["ask", index, "Who?", "--program", "traditional"]
    assert kraq(*words, "--trust").exit_code == 0
    assert kraq(*words).exit_code == 0  # is remembered
    moved = index.rename(account / "moved.kraq")
    assert kraq("ask", moved, "Who?", "--program", "traditional").exit_code == 0
    rename(moved, **evil_role(server, api_base=f"{server.url}/other", api_key_env=None))
    assert isinstance(kraq("ask", moved, "Who?").exception, UntrustedError)  # names something else now
    other = account / "other.kraq"
    build_index(_corpus(account), other)  # a copy would be the same index
    rename(other, **evil_role(server, api_key_env=None))
    assert isinstance(kraq("ask", other, "Who?").exception, UntrustedError)
    assert server.keys == set()


def test_trust_does_not_send_a_key_of_another_provider(server: Recorder, account: Path) -> None:
    index = made_by_a_stranger(account / "x.kraq")
    for variable in (STOLEN, "OPENAI_API_KEY", "MY_KEY"):
        rename(index, **evil_role(server, api_key_env=variable))
        refused = kraq("ask", index, "Who?", "--trust").exception
        assert isinstance(refused, UntrustedError)
        assert variable in str(refused)
        assert "--config FILE" in str(refused)
    assert server.requests == []
    rename(index, **evil_role(server, api_key_env="HOSTED_VLLM_API_KEY"))
    assert kraq("ask", index, "Who?", "--program", "traditional", "--trust").exit_code == 0
    assert server.keys == {f"Bearer {SECRET}-HOSTED_VLLM_API_KEY"}


def test_the_command_lines_server_is_not_sent_the_key_that_an_index_names(server: Recorder, account: Path) -> None:
    index = made_by_a_stranger(account / "x.kraq", **evil_role(server, api_base="http://127.0.0.1:9/v1"))
    words: list[str | Path] = ["ask", index, "Who?", "--program", "traditional", "--lm", "hosted_vllm/m"]
    assert kraq(*words, "--api-base", server.url).exit_code == 0
    rename(index, **evil_role(server))
    assert kraq(*words, "--api-base", server.url).exit_code == 0  # nor where it names that server itself
    assert len(server.requests) == 2
    assert server.keys == set()
    assert kraq("ask", index, "Who?", "--program", "traditional", "--lm", "embedded").exit_code == 0


def test_settings_of_ones_own_may_name_any_key(server: Recorder, account: Path) -> None:
    index = made_by_a_stranger(account / "x.kraq", **evil_role(server))
    (account / "mine.toml").write_text(
        f'[roles.default]\nmodel = "hosted_vllm/m"\napi_base = "{server.url}"\napi_key_env = "MY_KEY"\n'
    )
    assert kraq("ask", index, "Who?", "--program", "traditional", "--config", "mine.toml").exit_code == 0
    assert server.keys == {f"Bearer {SECRET}-MY_KEY"}


def test_who_builds_an_index_has_agreed(server: Recorder, account: Path) -> None:
    role = RoleSettings(model="hosted_vllm/m", api_base=server.url, api_key_env="MY_KEY", retries=0)
    with pytest.raises(KraqError):  # the recorder extracts nothing
        build_index(_corpus(account), account / "x.kraq", settings=Settings(roles={"default": role}))
    server.requests.clear()
    with pytest.raises(KraqError):
        resume_index(account / "x.kraq")
    assert server.keys == {f"Bearer {SECRET}-MY_KEY"}


def test_a_found_kraq_toml_is_used_once_the_user_agreed(server: Recorder, account: Path) -> None:
    _corpus(account)
    toml = f'[roles.default]\nretries = 0\nmodel = "hosted_vllm/m"\napi_base = "{server.url}"\n'
    (account / "kraq.toml").write_text(toml)
    words = ["index", "corpus.txt"]
    refused = kraq(*words).exception
    assert isinstance(refused, UntrustedError)
    assert "--config kraq.toml" in str(refused)
    assert "--trust" in str(refused)
    assert server.requests == []
    result = kraq(*words, "--trust")
    assert "kraq.toml of this folder: [roles.default]" in result.stderr
    assert server.requests
    server.requests.clear()
    kraq(*words)  # is remembered
    assert server.requests
    server.requests.clear()
    (account / "kraq.toml").write_text(toml + f'api_key_env = "{STOLEN}"\n')
    assert isinstance(kraq(*words).exception, UntrustedError)
    assert isinstance(kraq(*words, "--trust").exception, UntrustedError)
    assert kraq(*words, "--lm", "embedded", "--out", "y.kraq").exit_code == 0
    assert server.requests == []
    kraq(*words, "--config", "kraq.toml")  # named by the user
    assert server.keys == {f"Bearer {SECRET}-{STOLEN}"}


def test_a_kraq_toml_without_servers_needs_no_word(account: Path) -> None:
    _corpus(account)
    (account / "kraq.toml").write_text("[chunks]\ntokens = 100\n")
    result = kraq("index", "corpus.txt")
    assert result.exit_code == 0
    assert "of this folder" not in result.stderr


def test_on_a_terminal_the_user_is_asked(server: Recorder, account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = made_by_a_stranger(account / "x.kraq", **evil_role(server, api_key_env=None))
    monkeypatch.setattr("kraq_dspy.apps.cli.model_options._is_terminal", lambda: True)
    words = [*map(str, ["ask", index, "Who?", "--program", "traditional"])]
    assert CliRunner().invoke(app, words, input="n\n").exit_code == 1
    assert server.requests == []
    assert CliRunner().invoke(app, words, input="y\n").exit_code == 0
    assert CliRunner().invoke(app, words, input="").exit_code == 0


def test_a_saved_program_names_no_server(server: Recorder, account: Path) -> None:
    with Workspace.open(made_by_a_stranger(account / "x.kraq")) as space:
        program = space.program("traditional")
        state = program.dump_state()
        for part in state.values():
            part["lm"] = {"model": "openai/gpt", "api_base": server.url, "model_type": "chat"}
        program.load_state(state)
        program(question="Who?")
    assert server.requests == []


def test_an_encoder_is_sent_a_key_only_of_its_own_provider(server: Recorder) -> None:
    load_embedder(EncoderSettings(name="m", api_base=server.url)).encode_queries(["one"])
    assert server.requests
    assert server.keys == set()
    load_embedder(EncoderSettings(name="m", api_base=server.url, api_key_env="MY_KEY")).encode_queries(["one"])
    assert server.keys == {f"Bearer {SECRET}-MY_KEY"}


def test_litellm_is_given_no_key_for_an_address_that_is_not_its_providers(server: Recorder) -> None:
    pytest.importorskip("litellm", reason="needs litellm: pip install 'kraq-dspy[litellm]'")
    lm = make_lm(RoleSettings(model="mistral/mistral-small", api_base=server.url, retries=0))
    lm("Who?")
    assert server.requests
    assert server.keys == set()


def test_the_table_of_providers_decides_which_key_belongs_to_an_address() -> None:
    assert consent.own_variables("https://api.openai.com/v1", "openai") == ("OPENAI_API_KEY",)
    assert consent.own_variables("http://api.openai.com/v1", "openai") == ()  # in the clear
    assert consent.own_variables("https://api.openai.com.evil.example/v1", "openai") == ()
    assert consent.own_variables("https://evil.example/api.openai.com", "openai") == ()
    assert consent.own_variables("https://api.openai.com@evil.example/v1", "openai") == ()
    assert consent.own_variables("https://mine.openai.azure.com", "azure") == ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY")
    assert consent.own_variables("openai") == ("OPENAI_API_KEY",)


def test_destinations_are_what_leaves_the_machine() -> None:
    assert consent.destinations(Settings()) == ()
    local = Settings(
        roles={"default": RoleSettings(model="gguf/m.gguf"), "judge": RoleSettings(model="transformers/m")}
    )
    assert consent.destinations(local) == ()
    named = Settings(
        roles={"default": RoleSettings(model="anthropic/claude")},
        encoder=EncoderSettings(api_base="http://user:word@e/v1/"),
        store=StoreSettings(url="http://s:6333"),
        run=RunSettings(ray_address="r:6379"),
    )
    assert [place.address for place in consent.destinations(named)] == [
        "anthropic",
        "http://e/v1",
        "http://s:6333",
        "r:6379",
    ]


def test_a_folder_that_cannot_be_written_costs_the_memory_alone(
    server: Recorder, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = made_by_a_stranger(account / "x.kraq", **evil_role(server, api_key_env=None))
    (account / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(account / "file"))
    assert kraq("ask", index, "Who?", "--program", "traditional", "--trust").exit_code == 0
    assert isinstance(kraq("ask", index, "Who?", "--program", "traditional").exception, UntrustedError)


def test_damaged_consents_agree_to_nothing(server: Recorder, account: Path) -> None:
    index = made_by_a_stranger(account / "x.kraq", **evil_role(server, api_key_env=None))
    file = consent._consents()
    file.parent.mkdir(parents=True)
    file.write_bytes(b'{"for": 3}\n[]\n"text"\n\xff\xfe\n{"for": "index"\n')
    with pytest.raises(UntrustedError):
        Workspace.open(index)


def test_settings_of_a_manifest_are_used_through_consent_alone() -> None:
    """Only single sections that name no address are read past `Index.usable_settings`."""
    package = Path(kraq_dspy.__file__).parent
    allowed = {
        "asset/store/index.py",
        "asset/store/manifest.py",
        "apps/cli/model_options.py",
        "indexing/view/making.py",
    }
    past = []
    for path in package.rglob("*.py"):
        for line in path.read_text("utf-8").splitlines():
            rest = line.partition("manifest.settings")[2]
            if "manifest.settings" in line and not rest.startswith(
                (".chunks", ".redact", ".summaries", ".community_tokens", ".store.url")
            ):
                past.append((path.relative_to(package).as_posix(), line.strip()))
    assert [place for place in past if place[0] not in allowed] == []
