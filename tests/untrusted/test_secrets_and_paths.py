"""Keys stay out of whatever is written or printed; ids of documents stay out of paths; control codes off terminals."""

import json
from pathlib import Path

import pytest
from stand_in import stand_in
from typer.testing import CliRunner

from kraq_dspy import build_index, export_index, make_lm
from kraq_dspy.errors import ModelError
from kraq_dspy.indexing.index.exchange import FORMATS
from kraq_dspy.records import Document
from kraq_dspy.settings import RoleSettings, read_settings
from kraq_dspy.workspace import Workspace
from tests.conftest import WarmShell
from tests.whole_program import app

KEY = "sk-kraq-0123456789-not-to-be-seen"
PASSWORD = "hunter2-not-to-be-seen"
TEXTS = {
    "a": "Ada Lovelace met Charles Babbage in London. Charles Babbage lived in London.",
    "b": "Charles Babbage built the Difference Engine with Ada Lovelace.",
}


def files_with(folder: Path, secret: str) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_a_key_is_in_no_file_and_no_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRAQ_TEST_KEY", KEY)
    (tmp_path / "corpus").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "corpus" / f"{name}.txt").write_text(text)
    (tmp_path / "made").mkdir()
    out, written = tmp_path / "made" / "x.kraq", ""
    with stand_in() as server:
        (tmp_path / "kraq.toml").write_text(
            f'[roles.default]\nretries = 0\nmodel = "hosted_vllm/m"\napi_base = "{server.url}"\n'
            'api_key_env = "KRAQ_TEST_KEY"\n'
        )
        config = ["--config", str(tmp_path / "kraq.toml")]
        server.configure(rate_500=0.2, seed=4)  # failures are written down too
        for words in (
            ["-v", "index", str(tmp_path / "corpus"), "--out", str(out), *config, "--json"],
            ["-v", "index", str(tmp_path / "corpus"), "--out", str(out), *config],
            ["-v", "ask", str(out), "Who met whom?", *config, "--json"],
            ["status", str(out), "--json"],
            ["status", str(out)],
            *(["export", str(out), "--out", str(tmp_path / "made" / name), "--format", name] for name in FORMATS),
        ):
            result = CliRunner().invoke(app, words)
            written += result.output + result.stderr + repr(result.exception)
        with Workspace.open(out, settings=read_settings(tmp_path / "kraq.toml")) as space:
            program = space.program("combined")
            program.save(tmp_path / "made" / "program.json")
            written += repr(program) + repr(space.models["answerer"]) + json.dumps(program.dump_state(), default=repr)
        monkeypatch.delenv("KRAQ_TEST_KEY")
        refused = CliRunner().invoke(app, ["ask", str(out), "Who?", *config])
        written += refused.output + repr(refused.exception)
    assert "traditional" in written  # what answered is in the output, so there is one
    assert "KRAQ_TEST_KEY" in repr(refused.exception)  # the variable is named, its value is not
    assert KEY not in written
    assert files_with(tmp_path / "made", KEY) == []


def test_an_address_with_a_password_is_refused_without_showing_it(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="api_key_env") as refused:
        make_lm(RoleSettings(model="hosted_vllm/m", api_base=f"http://ada:{PASSWORD}@127.0.0.1:9/v1"))
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        f"http://ada:{PASSWORD}@127.0.0.1:9/v1",
        f"http://{PASSWORD}@127.0.0.1:9/v1",
        f"ada:{PASSWORD}@127.0.0.1:9/v1",
        f"http://127.0.0.1:9/v1?api_key={PASSWORD}",
        f"http://127.0.0.1:9/v1?version=3&X-Access-Token={PASSWORD}",
    ],
)
@pytest.mark.parametrize("option", ["--api-base", "--encoder-api-base"])
def test_a_secret_on_the_command_line_stays_there(tmp_path: Path, option: str, address: str) -> None:
    (tmp_path / "a.txt").write_text(TEXTS["a"])
    words = ["-v", "index", str(tmp_path / "a.txt"), "--out", str(tmp_path / "x.kraq"), option, address]
    words += ["--lm", "hosted_vllm/m"] if option == "--api-base" else ["--encoder", "m"]
    refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, ModelError)
    assert "api_key_env" in str(refused.exception)
    assert PASSWORD not in refused.output + refused.stderr + str(refused.exception)
    assert files_with(tmp_path, PASSWORD) == []


def test_the_lock_of_an_index_holds_nothing_that_was_typed(kraq: WarmShell, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXTS["a"])
    (tmp_path / "b.txt").write_text(TEXTS["b"])
    out = str(tmp_path / "x.kraq")
    assert kraq("index", str(tmp_path / "a.txt"), "--out", out).returncode == 0
    assert kraq("update", "--add", out, str(tmp_path / "b.txt")).returncode == 0
    assert kraq("remove", out, "b.txt").returncode == 0
    lock = (tmp_path / "x.kraq" / "lock").read_text()
    assert "remove" in lock
    assert "b.txt" not in lock
    assert str(tmp_path) not in lock


def test_an_error_does_not_show_the_key(kraq: WarmShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRAQ_TEST_KEY", KEY)
    role = {"model": "hosted_vllm/m", "api_base": "http://127.0.0.1:9/v1", "api_key_env": "KRAQ_TEST_KEY"}
    config = "[roles.default]\nretries = 0\n" + "".join(f'{name} = "{value}"\n' for name, value in role.items())
    (tmp_path / "kraq.toml").write_text(config)
    (tmp_path / "a.txt").write_text(TEXTS["a"])
    words = ["-v", "index", str(tmp_path / "a.txt"), "--out", str(tmp_path / "x.kraq")]
    words += ["--config", str(tmp_path / "kraq.toml")]
    process = kraq(*words)
    assert process.returncode == 1
    assert "127.0.0.1:9" in process.stderr
    assert KEY not in process.stderr + process.stdout
    assert files_with(tmp_path / "x.kraq", KEY) == []


IDS = ["../../outside", "/tmp/outside", "..\\outside", "a/../../outside", "C:\\outside", "con\0trol", "~/outside", "."]


def test_ids_of_documents_never_become_paths(tmp_path: Path) -> None:
    inside = tmp_path / "deep" / "er"
    inside.mkdir(parents=True)
    documents = [Document(id, id, f"{TEXTS['a']} Number {number}.", id) for number, id in enumerate(IDS)]
    build_index(documents, inside / "x.kraq")
    for name in FORMATS:
        export_index(inside / "x.kraq", inside / f"out-{name}", name)
    made = {path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {("deep", "er")}
    assert not list(tmp_path.rglob("*outside*"))
    assert not Path("/tmp/outside").exists()


def test_control_codes_and_markup_of_documents_do_not_reach_the_terminal(kraq: WarmShell, tmp_path: Path) -> None:
    codes = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J [red]markup[/red] [link=http://x]y[/link] \u202eback\r"
    rows = [
        {"id": f"{name} {codes}", "title": f"Ada {codes}", "text": f"{text} Ada {codes} Lovelace met Charles {codes}."}
        for name, text in TEXTS.items()
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(json.dumps(row) for row in [*rows, {"id": codes, "text": 3}]))
    out = str(tmp_path / "x.kraq")
    shown = ""
    for words in (
        ["index", str(tmp_path / "corpus.jsonl"), "--out", out],
        ["status", out],
        ["questions", out],
        ["ask", out, f"Who met {codes}?"],
    ):
        result = CliRunner().invoke(app, words)
        shown += result.output + (result.stderr or "")
    shown += kraq("ask", f"{out}{codes}", "Who?").stderr
    assert "Ada" in shown
    assert "There is no index" in shown
    assert "[red]markup" in shown
    for code in ("\x1b", "\x07", "\x9b", "\u202e"):
        assert code not in shown
