"""Many readers and one writer, with kills: nobody meets an error or a mixed state, and the disk is given back."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill -9")


def crowd(folder: Path, seconds: float, seed: int, *url: str) -> dict[str, Any]:
    script = Path(__file__).with_name("crowd.py")
    words = [sys.executable, str(script), str(folder / "x.kraq"), str(seconds), str(seed), *url]
    process = subprocess.run(words, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-3000:]
    report: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    print(report)
    assert report["failures"] == 0, process.stderr[-3000:]
    return report


def require_clean(report: dict[str, Any]) -> None:
    assert report["states_left"] == 1
    assert report["left"] == ["lock", "manifest.json", "states"]
    assert report["states_seen"] > 1
    assert report["written"] > 1
    assert set(report["kills"]) == {"read", "write"}


def test_eight_readers_and_a_writer_with_kills_for_some_seconds(tmp_path: Path) -> None:
    require_clean(crowd(tmp_path, 5, 2026))


@pytest.mark.slow
def test_eight_readers_and_a_writer_with_kills_for_two_minutes(tmp_path: Path) -> None:
    report = crowd(tmp_path, 120, 7)
    require_clean(report)
    assert sum(report["kills"].values()) > 100


@pytest.fixture
def qdrant(tmp_path: Path) -> Iterator[str]:
    """The address of a Qdrant server: QDRANT_URL, or one that is started where `qdrant` is installed."""
    if url := os.environ.get("QDRANT_URL"):
        yield url
        return
    if (binary := shutil.which("qdrant")) is None:
        pytest.skip("there is no Qdrant server: QDRANT_URL is unset, and there is no program `qdrant`")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ports = {"QDRANT__SERVICE__HTTP_PORT": str(port), "QDRANT__SERVICE__GRPC_PORT": "null"}
    server = subprocess.Popen([binary], cwd=tmp_path, env={**os.environ, **ports}, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    while server.poll() is None and not answers(f"{url}/readyz"):
        time.sleep(0.1)
    yield url
    server.kill()
    server.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False


@pytest.mark.slow
def test_eight_readers_and_a_writer_with_vectors_on_a_qdrant_server(tmp_path: Path, qdrant: str) -> None:
    require_clean(crowd(tmp_path, 30, 11, qdrant))
