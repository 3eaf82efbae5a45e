"""The command for vLLM that kraq.toml asks for, and the calls that change adapters."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraq_dspy.errors import ConfigError, ModelError
from kraq_dspy.models.lms.local_models import served_name, with_adapter
from kraq_dspy.models.lms.vllm_server import servers_of
from kraq_dspy.settings import RoleSettings, Settings

URL = "http://localhost:8123/v1"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    place = tmp_path / "generator"
    place.mkdir()
    (place / "adapter_config.json").write_text(json.dumps({"r": 40, "target_modules": ["v_proj", "q_proj"]}))
    (place / "adapter_model.safetensors").write_bytes(b"weights")
    return str(place)


def settings(folder: str) -> Settings:
    base = RoleSettings(model="hosted_vllm/base", api_base=URL, api_key_env="THE_KEY")
    tuned = RoleSettings(model="hosted_vllm/base", api_base=URL, api_key_env="THE_KEY", adapter=folder)
    return Settings(roles={"default": RoleSettings(), "answerer": base, "generator": tuned})


def test_the_command_serves_the_base_once_with_the_adapters_of_its_roles(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    [server] = servers_of(settings(folder))
    name = served_name(folder)
    assert server.roles == ("generator", "answerer")
    assert (
        server.command()
        == (
            f"vllm serve base --host localhost --port 8123 --enable-lora --max-lora-rank 64 --max-loras 1 "
            f"--lora-modules {name}={folder} --lora-target-modules q_proj v_proj"
        ).split()
    )
    monkeypatch.setenv("THE_KEY", "secret")
    assert server.shown().startswith('VLLM_API_KEY="$THE_KEY" vllm')
    assert "secret" not in server.shown()
    assert server.environment() == {"VLLM_API_KEY": "secret"}
    assert with_adapter(settings(folder).role("generator")).model == f"hosted_vllm/{name}"


def test_a_role_with_several_addresses_has_a_command_for_each() -> None:
    role = RoleSettings(model="hosted_vllm/base", api_base="http://localhost:8123/v1,http://localhost:8124/v1")
    servers = servers_of(Settings(roles={"answerer": role, "judge": role}))
    assert [server.command()[-1] for server in servers] == ["8123", "8124"]
    assert [server.roles for server in servers] == [("answerer", "judge")] * 2


def test_options_of_vllm_go_to_it_and_a_server_without_adapters_has_none(folder: str) -> None:
    [server] = servers_of(settings(folder))
    command = " ".join(server.command(more=("--dtype", "float32")))
    assert command.endswith("--lora-target-modules q_proj v_proj --dtype float32")
    [bare] = servers_of(Settings(roles={"answerer": settings(folder).roles["answerer"]}))
    assert "--enable-lora" not in bare.command()


def test_new_weights_are_a_new_name(folder: str) -> None:
    before = served_name(folder)
    assert before.startswith("generator-")
    (Path(folder) / "adapter_model.safetensors").write_bytes(b"other weights")
    assert served_name(folder) != before


def test_what_one_server_cannot_do_is_refused(folder: str) -> None:
    other = RoleSettings(model="hosted_vllm/other", api_base=URL)
    roles = {**settings(folder).roles, "judge": other}
    with pytest.raises(ConfigError, match="one vLLM serves one base model"):
        servers_of(Settings(roles=roles))
    with pytest.raises(ConfigError, match="No role is served by vLLM"):
        servers_of(Settings())
    with pytest.raises(ModelError, match="is no adapter"):
        servers_of(settings(f"{folder}/nowhere"))
    with pytest.raises(ModelError, match="cannot take the adapter"):
        with_adapter(RoleSettings(model="openai/gpt-4o", adapter=folder))


def test_the_command_line_prints_it_or_becomes_it(folder: str, tmp_path: Path) -> None:
    (tmp_path / "kraq.toml").write_text(
        f'[roles.generator]\nmodel = "hosted_vllm/base"\napi_base = "{URL}"\nadapter = "{folder}"\n'
    )
    words = [sys.executable, "-m", "kraq_dspy", "lm", "serve"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("vllm serve base --host localhost --port 8123 --enable-lora")
    program = tmp_path / "vllm"
    program.write_text('#!/bin/sh\necho "$PPID $@"\n')
    program.chmod(0o755)
    more = ["--run", "--vllm", str(program), "--", "--dtype", "float32"]
    became = subprocess.run([*words, *more], cwd=tmp_path, capture_output=True, text=True, check=True)
    parent, _, arguments = became.stdout.strip().partition(" ")
    assert int(parent) == os.getpid()  # no process in between that would leave it behind
    assert (arguments[:10], arguments[-15:]) == ("serve base", "--dtype float32")
    absent = subprocess.run(
        [*words, "--run", "--vllm", "no-such-program"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (absent.returncode, "no program 'no-such-program'" in absent.stderr.replace("\n", " ")) == (1, True)
