"""Tests that nothing of a folder that a stranger made is run, loaded or fetched before the user agreed to it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraq_dspy import Index, build_index
from kraq_dspy.apps.serve.refusals import RequestError
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.asset import consent
from kraq_dspy.errors import ModelError, UntrustedError
from kraq_dspy.models.embedders.short_names import KNOWN_ENCODERS
from kraq_dspy.models.lms import local_models
from kraq_dspy.records import Document
from kraq_dspy.settings import (
    BROUGHT_MODELS,
    KNOWN_ENCODERS as NAMES_OF_ENCODERS,
    EncoderSettings,
    InstructedSettings,
    K2RAGSettings,
    RoleSettings,
    Settings,
)
from kraq_dspy.workspace import Workspace
from tests.kept import kept_index
from tests.whole_program import app

TABLE = """
title = "Mine"
kind = "answers"
baseline = "traditional"
metrics = ["{metric}"]
[[systems]]
name = "traditional"
program = "traditional"
{more}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that somebody else made, in which the user stands, with consents of their own elsewhere."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    return tmp_path / "folder"


def rename_settings(index: Path, **sections: dict[str, object]) -> None:
    """As a stranger writes them, who has another configuration folder."""
    for manifest in index.rglob("manifest.json"):
        fields = json.loads(manifest.read_text())
        fields.pop("sum", None)
        for section, values in sections.items():
            fields["settings"][section].update(values)
        manifest.write_text(json.dumps(fields))


def toml_of(sections: dict[str, dict[str, object]]) -> str:
    text = ""
    for name, values in sections.items():
        tables = {f"roles.{role}": value for role, value in values.items()} if name == "roles" else {name: values}
        for table, fields in tables.items():
            text += f"[{table}]\n" + "".join(f'{key} = "{value}"\n' for key, value in dict(fields).items())  # type: ignore[call-overload]
    return text


def test_pip_of_the_current_folder_is_not_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pip.py", "subprocess.py", "pip/__main__.py", "pip/__init__.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"open({str(folder / 'was-run')!r}, 'w')")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # nothing is asked for
    with pytest.raises(ModelError, match="cannot be downloaded"):
        local_models.get_model(local_models.MODELS["smollm2-135m"], folder / "models")
    assert not (folder / "was-run").exists()


def test_a_file_of_the_current_folder_does_not_take_the_place_of_a_known_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "smollm2-135m").write_text("of a stranger")
    monkeypatch.setattr(local_models, "models_folder", lambda: folder / "cache")
    with pytest.raises(ModelError, match="kraq lm get smollm2-135m"):
        local_models.local_file("smollm2-135m")


@pytest.mark.parametrize("metric", ["m.py:f", "./m.py:f", "m:f"])
def test_the_code_that_a_table_names_is_not_run_unasked(folder: Path, metric: str) -> None:
    (folder / "m.py").write_text(f"open({str(folder / 'was-run')!r}, 'w')\ndef f(example, prediction): return 1\n")
    (folder / "t.toml").write_text(TABLE.format(metric=metric, more=""))
    for words in (["bench", "t.toml"],):
        refused = CliRunner().invoke(app, [*words, "--dataset", "hotpotqa-mini"])
        assert isinstance(refused.exception, UntrustedError)
        assert f"code of {metric}" in str(refused.exception)
        assert "--trust" in str(refused.exception)
    assert not (folder / "was-run").exists()


def test_code_is_asked_about_anew_when_it_has_changed(folder: Path) -> None:
    source = consent.table_file(folder / "t.toml")
    (folder / "m.py").write_text("def f(*_): return 1\n")
    consent.require_agreed(source, [consent.code("metrics", "m.py:f")], trust=True)
    consent.require_agreed(source, [consent.code("metrics", "m.py:f")])
    (folder / "m.py").write_text("def f(*_): return steal()\n")
    with pytest.raises(UntrustedError, match=r"code of m.py:f"):
        consent.require_agreed(source, [consent.code("metrics", "m.py:f")])


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ('settings = { encoder = { api_base = "http://stranger.example/v1" } }', "http://stranger.example/v1"),
        ('settings = { encoder = { name = "stranger/encoder" } }', "stranger/encoder"),
        ('settings = { store = { url = "http://stranger.example:6333" } }', "http://stranger.example:6333"),
        ('settings = { k2rag = { summariser = "stranger/model" } }', "stranger/model"),
    ],
)
def test_what_a_table_sets_is_asked_about_as_an_index_is(folder: Path, section: str, named: str) -> None:
    (folder / "t.toml").write_text(TABLE.format(metric="token_f1", more=section))
    refused = CliRunner().invoke(app, ["bench", "t.toml", "--dataset", "hotpotqa-mini"])
    assert isinstance(refused.exception, UntrustedError)
    assert named in str(refused.exception)


FOREIGN: list[tuple[str, dict[str, object]]] = [
    ("transformers/stranger/repo", {"roles": {"default": {"model": "transformers/stranger/repo"}}}),
    ("gguf/stranger.gguf", {"roles": {"judge": {"model": "gguf/stranger.gguf"}}}),
    ("gguf/hf:stranger/repo/m.gguf", {"roles": {"default": {"model": "gguf/hf:stranger/repo/m.gguf"}}}),
    ("./stranger.gguf", {"roles": {"default": {"model": "./stranger.gguf"}}}),
    ("gguf/smollm2-135m#adapter", {"roles": {"default": {"model": "gguf/smollm2-135m", "adapter": "adapter"}}}),
    ("stranger/encoder", {"encoder": {"name": "stranger/encoder"}}),
    ("./encoder", {"encoder": {"name": "./encoder"}}),
    ("stranger/instructed", {"instructed": {"kind": "inbedder", "name": "stranger/instructed"}}),
    ("stranger/summariser", {"k2rag": {"summariser": "stranger/summariser"}}),
]


@pytest.mark.parametrize(("named", "sections"), FOREIGN, ids=[named for named, _ in FOREIGN])
def test_a_model_that_an_index_or_a_kraq_toml_names_is_not_loaded_unasked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, named: str, sections: dict[str, dict[str, object]]
) -> None:
    kept_index([Document("ada", "", "Ada Lovelace met Charles Babbage in London.")], folder / "x.kraq")
    rename_settings(folder / "x.kraq", **sections)
    with pytest.raises(UntrustedError, match="Nothing was sent or loaded") as refused:
        Workspace.open(folder / "x.kraq")
    assert named in str(refused.value)

    (folder / "kraq.toml").write_text(toml_of(sections))
    (folder / "a.txt").write_text("Ada Lovelace met Charles Babbage in London.")
    unasked = CliRunner().invoke(app, ["index", "a.txt", "--out", "y.kraq"])
    assert isinstance(unasked.exception, UntrustedError)
    assert named in str(unasked.exception)


def test_who_makes_an_index_agrees_to_the_models_that_it_names(folder: Path) -> None:
    settings = Settings(instructed=InstructedSettings(kind="inbedder", name="mine/instructed"))
    build_index(["Ada Lovelace met Charles Babbage in London."], folder / "x.kraq", settings=settings)
    with Index.open(folder / "x.kraq") as index:
        assert index.usable_settings().instructed.name == "mine/instructed"


def test_what_the_library_knows_by_name_is_loaded_unasked() -> None:
    assert set(BROUGHT_MODELS) == set(local_models.MODELS)
    assert set(NAMES_OF_ENCODERS) == {"minilm", *KNOWN_ENCODERS}
    known = Settings(
        roles={
            "default": RoleSettings(model="gguf/smollm2-135m"),
            "generator": RoleSettings(model="gguf/smollm2-135m", adapter=local_models.QUESTIONS),
        },
        encoder=EncoderSettings(name="bge-small"),
    )
    assert consent.asked_about(known) == ()
    assert [place.place for place in consent.asked_about(Settings(k2rag=K2RAGSettings(summariser="a/b")))] == ["k2rag"]


def test_a_request_names_no_model_to_load(folder: Path) -> None:
    kept_index([Document("ada", "", "Ada Lovelace met Charles Babbage in London.")], folder / "x.kraq")
    with Workspace.open(folder / "x.kraq") as space:
        served = ServedIndex("x", space)
        for ask in (
            lambda: served.retriever("cross-encoder:stranger/repo"),
            lambda: served.program("traditional", "cross-encoder:stranger/repo"),
            lambda: served.program("traditional", None, {"retriever": "cross-encoder:stranger/repo"}),
        ):
            with pytest.raises(RequestError, match="no client may"):
                ask()
