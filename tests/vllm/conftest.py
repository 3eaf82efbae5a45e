"""A real vLLM server with tiny random weights, which `kraq lm serve` starts once; it is stopped after these tests."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from kraq_dspy.models.lms.local_models import served_name
from tests.conftest import TinyModels

ENVIRONMENT = Path(os.environ.get("KRAQ_VLLM_ENV", Path.home() / ".cache" / "kraq-dspy" / "vllm"))
START_S = 420
KEY_ENV, KEY = "VLLM_TEST_KEY", "key-of-the-test"
CONTEXT = 16_384


@dataclass(frozen=True)
class Server:
    """`model` and `adapter` are the folders that it serves as "instruct" and `generator`; `other` is an adapter that it
    does not know yet."""

    root: str
    model: str
    adapter: str
    other: str

    @property
    def generator(self) -> str:
        return served_name(self.adapter)

    @property
    def api_base(self) -> str:
        return f"{self.root}/v1"

    def count(self, metric: str, **labels: str) -> int:
        """The value of one of its metrics, summed over all labels but those given."""
        parts = [f'{name}="{value}"' for name, value in labels.items()]
        lines = httpx.get(f"{self.root}/metrics").text.splitlines()
        matching = [line for line in lines if line.startswith(metric + "{") and all(label in line for label in parts)]
        return int(sum(float(line.rpartition(" ")[2]) for line in matching))


@pytest.fixture(scope="session")
def server(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not (ENVIRONMENT / "bin" / "vllm").exists():
        pytest.skip(f"needs vLLM in {ENVIRONMENT}: run scripts/vllm_env.sh, or make test-vllm")
    folder = tmp_path_factory.mktemp("served")
    model = tiny_models.llama(folder / "model", context=CONTEXT)
    adapter = tiny_models.adapter(model, folder / "generator", seed=1)
    other = tiny_models.adapter(model, folder / "other", seed=2)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "server.log"
    root = f"http://127.0.0.1:{port}"
    command = [
        *("nice", "-n", "15"),  # it takes every core it gets, and the tests want to be heard meanwhile
        *(sys.executable, "-m", "kraq_dspy", "lm", "serve", model, "--adapter", adapter),
        *("--host", "127.0.0.1", "--port", str(port), "--vllm", str(ENVIRONMENT / "bin" / "vllm"), "--"),
        *("--api-key", KEY, "--served-model-name", "instruct", "--dtype", "float32", "--enforce-eager"),
        *("--max-model-len", str(CONTEXT), "--max-logprobs", "20"),
    ]
    settings = {
        "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        KEY_ENV: KEY,
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env={**os.environ, **settings}, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        running = Server(root, model, adapter, other)
        _wait(running.root, process, log)
        yield running
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


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
