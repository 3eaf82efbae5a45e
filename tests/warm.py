"""Asks `tests/warm_shell.py` for processes: `kraq` commands and scripts, without the seconds that imports and a first
index take.

What depends on imports wants a real process.
"""

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

SETTINGS = {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}


class WarmProcess:
    """A process as `subprocess.Popen` shows it, whose output goes to files."""

    def __init__(self, folder: Path, command: dict[str, object]) -> None:
        self.returncode: int | None = None
        self._out = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed with this object)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(folder / "commands"))
        self._lines = self._connection.makefile("r")

        message = json.dumps(command).encode() + b"\n"
        with open(os.devnull, "rb") as nothing:
            files = [nothing.fileno(), self._out.fileno(), self._errors.fileno()]
            sent = socket.send_fds(self._connection, [message], files)
            self._connection.sendall(message[sent:])
            self.pid = int(self._lines.readline())

    def poll(self) -> int | None:
        """Its exit code, or None while it runs; -9 where SIGKILL ended it."""
        try:
            return self.wait(timeout=0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("kraq", timeout or 0)
            self.returncode = int(self._lines.readline())
            self._lines.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def output(self) -> tuple[str, str]:
        """What it has written so far: its output, and its errors."""
        texts = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) for file in (self._out, self._errors)]
        return texts[0].decode("utf-8"), texts[1].decode("utf-8")

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)
        return self.output()


class WarmShell:
    """`kraq("ask", index, "Who?", cwd=folder)`: a whole process with its output and exit code.

    `kraq.start(...)` does not wait for its end; `kraq.python(code, ...)` starts a script.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connection = _connected(folder)

    def __call__(self, *words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        process = self.start(*words, cwd=cwd)
        output, errors = process.communicate()
        assert process.returncode is not None
        return subprocess.CompletedProcess([*map(str, words)], process.returncode, output, errors)

    def start(self, *words: str | Path, cwd: Path | None = None) -> WarmProcess:
        return self._started(cwd, {"words": [*map(str, words)]})

    def python(self, code: str, *arguments: str | Path, cwd: Path | None = None) -> WarmProcess:
        """`python -c CODE ARGUMENTS`."""
        return self._started(cwd, {"code": code, "arguments": [*map(str, arguments)]})

    def _started(self, cwd: Path | None, command: dict[str, object]) -> WarmProcess:
        surroundings = {"cwd": str(cwd or Path.cwd()), "env": {**os.environ, **SETTINGS}}
        return WarmProcess(self._folder, {**command, **surroundings})

    def close(self) -> None:
        self._connection.close()  # the shell ends when its last user has gone


def _connected(folder: Path) -> socket.socket:
    """A connection to the shell of this run, which the first of the workers starts."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(folder / "users"))
        except OSError:
            _start(folder)
            connection.connect(str(folder / "users"))
        return connection


def _start(folder: Path) -> None:
    for name in ("commands", "users"):
        (folder / name).unlink(missing_ok=True)
    command = [sys.executable, str(Path(__file__).with_name("warm_shell.py")), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **SETTINGS})
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
