"""Starts `stand_in_server`, which is OpenAI-compatible, in a process of its own, and asks it what it saw."""

import json
import os
import platform
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parent


@dataclass(frozen=True)
class StandIn:
    """`url` is what a client is given as `api_base`. `process` is the server's, where this process started it."""

    root: str
    process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def stats(self) -> dict[str, Any]:
        """Requests, tokens, faults and concurrency since the start or the last reset."""
        return dict(self._ask("/stats"))

    def reset(self) -> None:
        self._ask("/reset", {})

    def configure(self, **knobs: float | int | str) -> None:
        """Change latency or faults while it runs; the names are those of the server's options."""
        self._ask("/config", knobs)

    def kill(self) -> None:
        """End it as a machine that fails ends it."""
        if self.process is None:
            raise RuntimeError(f"The server at {self.root} was not started here.")
        self.process.kill()

    def _ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.root + path, data=data, timeout=60) as reply:
            return json.loads(reply.read())


@contextmanager
def stand_in(**knobs: float | int | str) -> Iterator[StandIn]:
    """A server for the length of the block. `knobs` are its options, as in `latency_ms=200`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [word for name, value in knobs.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, "-m", "stand_in_server", "--port", str(port), *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(BENCHMARKS)}
    )
    try:
        assert process.stdout is not None
        started = process.stdout.readline()
        if "stand_in_server on" not in started:
            raise RuntimeError(f"The stand-in server did not start: {started!r}")
        yield StandIn(f"http://127.0.0.1:{port}", process)
    finally:
        process.terminate()
        process.wait(timeout=10)


def machine() -> str:
    """What a figure was measured on, in words."""
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def seconds_since(start: float) -> float:
    return time.monotonic() - start
