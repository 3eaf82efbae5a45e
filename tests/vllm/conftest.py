"""A real vLLM server with tiny random weights, started once for these tests and stopped after them."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

ENVIRONMENT = Path(os.environ.get("KRAQ_VLLM_ENV", Path.home() / ".cache" / "kraq-dspy" / "vllm"))
START_S = 420
KEY = "key-of-the-test"


@dataclass(frozen=True)
class Server:
    """`model` and `adapter` are the folders that it serves as "instruct" and "generator"."""

    root: str
    model: str
    adapter: str

    @property
    def api_base(self) -> str:
        return f"{self.root}/v1"

    def count(self, metric: str, **labels: str) -> int:
        """The value of one of its metrics, summed over all labels but those given."""
        wanted = [f'{name}="{value}"' for name, value in labels.items()]
        lines = httpx.get(f"{self.root}/metrics").text.splitlines()
        found = [line for line in lines if line.startswith(metric + "{") and all(label in line for label in wanted)]
        return int(sum(float(line.rpartition(" ")[2]) for line in found))


@pytest.fixture(scope="session")
def server(tiny_models: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not (ENVIRONMENT / "bin" / "vllm").exists():
        pytest.skip(f"needs vLLM in {ENVIRONMENT}: run scripts/vllm_env.sh, or make test-vllm")
    folder = tmp_path_factory.mktemp("served")
    model = tiny_models.llama(folder / "model", context=2048)
    adapter = tiny_models.adapter(model, folder / "generator", seed=1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "server.log"
    command = [
        *("nice", "-n", "15"),  # it takes every core it gets, and the tests want to be heard meanwhile
        *(str(ENVIRONMENT / "bin" / "vllm"), "serve", model, "--host", "127.0.0.1", "--port", str(port)),
        *("--served-model-name", "instruct", "--api-key", KEY, "--dtype", "float32", "--enforce-eager"),
        *("--max-model-len", "2048", "--enable-lora", "--lora-modules", f"generator={adapter}"),
        *("--max-lora-rank", "64", "--max-loras", "2", "--max-logprobs", "20"),
        # Without this, vLLM 0.32 on a processor adds LoRA to the logits too, and dies of the first prompt_logprobs.
        *("--lora-target-modules", "q_proj", "v_proj"),
    ]
    settings = {
        "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env={**os.environ, **settings}, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        found = Server(f"http://127.0.0.1:{port}", model, adapter)
        _wait(found.root, process, log)
        yield found
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_TEST_KEY", KEY)


def _wait(root: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            pytest.fail(f"vLLM ended with {process.returncode}:\n{log.read_text()[-3000:]}")
        try:
            if httpx.get(f"{root}/health", timeout=2).is_success:
                return
        except httpx.HTTPError:
            time.sleep(1)
    pytest.fail(f"vLLM did not start within {START_S} s:\n{log.read_text()[-3000:]}")
