"""The command for vLLM that kraq.toml asks for, and the calls that change adapters."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from kraq_dspy.errors import ConfigError, ModelError
from kraq_dspy.models.lms.local_models import served_name, with_adapter
from kraq_dspy.models.lms.servers.vllm_server import load_adapter, servers_of, unload_adapter
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
    assert server.shown(runtime=True).startswith('VLLM_API_KEY="$THE_KEY" VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm')
    assert "secret" not in server.shown()
    assert server.environment() == {"VLLM_API_KEY": "secret"}
    assert with_adapter(settings(folder).role("generator")).model == f"hosted_vllm/{name}"


def test_a_role_with_several_addresses_has_a_command_for_each() -> None:
    role = RoleSettings(model="hosted_vllm/base", api_base="http://localhost:8123/v1,http://localhost:8124/v1")
    servers = servers_of(Settings(roles={"answerer": role, "judge": role}))
    assert [server.command()[-1] for server in servers] == ["8123", "8124"]
    assert [server.roles for server in servers] == [("answerer", "judge")] * 2


def test_a_server_whose_adapters_may_change_has_room_for_one_more_of_a_larger_rank(folder: str) -> None:
    [server] = servers_of(settings(folder))
    command = " ".join(server.command(runtime=True, more=("--dtype", "float32")))
    assert "--max-loras 2" in command
    assert command.endswith("--lora-target-modules q_proj v_proj --dtype float32")
    [bare] = servers_of(Settings(roles={"answerer": settings(folder).roles["answerer"]}))
    assert bare.command(runtime=True)[-5:] == ["--enable-lora", "--max-lora-rank", "64", "--max-loras", "1"]
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
    with pytest.raises(ModelError, match="does not answer"):
        unload_adapter("http://127.0.0.1:9/v1", "generator")


def test_a_server_that_does_not_let_adapters_be_changed_is_told_from_one_that_does_not_know_them() -> None:
    bodies = ['{"detail": "Not Found"}', '{"error": {"message": "no adapter found in it", "code": 404}}']

    class Absent(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(404)
            self.end_headers()
            self.wfile.write(bodies.pop(0).encode())

        def log_message(self, format: str, *args: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Absent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        with pytest.raises(ModelError, match="start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"):
            load_adapter(url, "generator", "somewhere")
        with pytest.raises(ModelError, match=r"refused \(404\): no adapter found in it"):
            load_adapter(url, "generator", "somewhere")
        server.shutdown()


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
