"""`kraq lm serve` prints the command for vLLM with its adapters, and becomes that program where it is installed."""

import json
import os
from pathlib import Path

import pytest

from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.local_models import served_name
from kraq_dspy.models.lms.vllm_server import VLLMServer
from tests.conftest import TinyModels, WarmShell


@pytest.fixture(scope="module")
def adapter(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("served")
    return tiny_models.adapter(tiny_models.llama(folder / "model"), folder / "generator", seed=1)


def test_the_command_names_the_adapter_as_its_role_asks_for_it(adapter: str) -> None:
    command = VLLMServer("models/base", (adapter,), port=8123).command()
    assert command[:7] == ["vllm", "serve", "models/base", "--host", "localhost", "--port", "8123"]
    assert command[command.index("--lora-modules") + 1] == f"{served_name(adapter)}={adapter}"
    rank = json.loads((Path(adapter) / "adapter_config.json").read_text())["r"]
    assert int(command[command.index("--max-lora-rank") + 1]) >= rank


def test_a_folder_that_is_no_adapter_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no adapter"):
        VLLMServer("models/base", (str(tmp_path),)).command()


def test_it_is_printed_and_nothing_is_started_without_vllm(kraq: WarmShell, adapter: str) -> None:
    done = kraq("lm", "serve", "models/base", "--adapter", adapter, "--vllm", "no-such-vllm")
    assert done.returncode == 0
    assert done.stdout.startswith("no-such-vllm serve models/base --host localhost --port 8000 --enable-lora")
    assert 'api_base = "http://localhost:8000/v1"' in done.stderr
    assert "nothing was started" in done.stderr


def test_where_it_is_installed_the_program_takes_over(kraq: WarmShell, adapter: str, tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_text('#!/bin/sh\necho "started: $@"\n')
    program.chmod(0o755)
    done = kraq("lm", "serve", "models/base", "--vllm", program, "--", "--max-model-len", "4096")
    assert f"started: serve models/base --host localhost --port 8000 --max-model-len 4096{os.linesep}" in done.stdout
    printed = kraq("lm", "serve", "models/base", "--vllm", program, "--print")
    assert printed.stdout.startswith(f"{program} serve models/base")  # the program that would be started


def test_its_json_says_what_a_script_needs(kraq: WarmShell) -> None:
    said = json.loads(kraq("lm", "serve", "models/base", "--port", "9000", "--json").stdout)
    assert said["command"][:3] == ["vllm", "serve", "models/base"]
    assert said["api_base"] == "http://localhost:9000/v1"
    assert said["role"].startswith("[roles.generator]")
