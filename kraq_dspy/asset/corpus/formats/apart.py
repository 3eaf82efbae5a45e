"""Reads files in another process: one that exhausts memory or time, or crashes a library, costs itself alone.

The process starts with the first file that needs it, reads one file after the other, and lives until `end_reading`,
which a build calls once its corpus is read. A request is a line of JSON, and so is its reply. The process has limits of
memory (Linux) and of time for a file.
"""

import atexit
import contextlib
import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.boilerplate import Linked
from kraq_dspy.asset.corpus.formats.rows import BadRow, Reader, ReadSettings, Row
from kraq_dspy.errors import MissingExtraError
from kraq_dspy.records import Heading

MOST_MEMORY = 4 << 30  # bytes of address space
SECONDS = 600  # for one file


def kept_apart(reader: Reader) -> Reader:
    """The reader, run in the other process. `reader` is a function of a module, found there by its name."""

    @functools.wraps(reader)
    def read(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
        yield from _worker.rows(reader, path, settings)

    return read


class _Worker:
    """The other process. It reads one file at a time, whichever thread asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def rows(self, reader: Reader, path: Path, settings: ReadSettings) -> list[Row | BadRow]:
        """What the reader gives. Raises OSError for a file that cannot be opened."""
        request = _line([reader.__module__, reader.__qualname__, str(path.absolute()), asdict(settings)])
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            timer = threading.Timer(SECONDS, process.kill)
            timer.start()
            try:
                process.stdin.write(request)
                process.stdin.flush()
                reply = process.stdout.readline()
            except OSError:  # it ended before it took the request
                reply = b""
            finally:
                is_late = not timer.is_alive()
                timer.cancel()

            if not reply.endswith(b"\n"):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(5)
                self._discard()
                return [BadRow(_why(process.returncode, is_late=is_late))]
            rows, failure, is_ending = json.loads(
                reply
            )  # what a harmful file made of the other process may not run here
            if is_ending:
                self._discard()
        if failure is not None:
            raise OSError(*failure)
        return [_row_of(kind, values) for kind, values in rows]

    def end(self) -> None:
        with self._lock:
            self._discard()

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._owner != os.getpid():  # of a process that was copied from this one, the other process is not its own
            self._process, self._owner = None, os.getpid()
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(folder or os.getcwd() for folder in sys.path)},
            )
        return self._process

    def _discard(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was not sent yet
                    stream.close()


_worker = _Worker()


def end_reading() -> None:
    """End the other process; the next file starts one again."""
    _worker.end()


atexit.register(end_reading)


def serve() -> None:
    """Reads the files that standard input names, and writes their rows to standard output, until the input ends."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no row
    with contextlib.suppress(KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends whoever asks
    _limit_memory()
    for request in sys.stdin.buffer:
        module, name, path, settings = json.loads(request)
        reader: Reader = getattr(importlib.import_module(module), name)
        replies.write(_line(_outcome(reader, Path(path), ReadSettings(**settings))))
        replies.flush()


def _outcome(reader: Reader, path: Path, settings: ReadSettings) -> list[Any]:
    """The rows with their kinds, the number and text of an error of the system, and whether this process had better
    end."""
    failure, is_ending = None, False
    try:
        rows = list(reader(path, settings))
    except MissingExtraError as error:
        rows = [BadRow(str(error))]
    except OSError as error:
        rows, failure = [], (error.errno, error.strerror)
    except MemoryError:
        rows, is_ending = [BadRow(_TOO_MUCH)], True
    return [[[type(row).__name__, asdict(row)] for row in rows], failure, is_ending]


def _line(values: Any) -> bytes:
    """The values as one line of JSON; a set is a list there."""
    return json.dumps(values, default=list).encode("ascii") + b"\n"


def _row_of(kind: str, values: dict[str, Any]) -> Row | BadRow:
    """The row that the other process wrote."""
    if kind == "BadRow":
        return BadRow(**values)

    values["headings"] = tuple(Heading(**heading) for heading in values["headings"])
    values["linked"] = {int(start): Linked(**linked) for start, linked in values["linked"].items()}
    values["lacks"] = frozenset(values["lacks"])
    values["labels"], values["left_out"] = tuple(values["labels"]), tuple(values["left_out"])
    return Row(**values)


_TOO_MUCH = (
    f"Reading the file takes more than {MOST_MEMORY >> 30} GB of memory. Split it, or save it again: it may be "
    "damaged, or made to be so."
)


def _why(code: int | None, *, is_late: bool) -> str:
    """Why the other process ended without an answer."""
    if is_late:
        return f"Reading the file takes longer than {SECONDS // 60} minutes. Split it, or take it out of the corpus."
    name = ""
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            name = f" ({signal.Signals(-code).name})"
    return (
        f"The process that read the file ended{name}: the file exhausts the memory or is damaged. Open and save it "
        "again, or take it out of the corpus."
    )


def _limit_memory() -> None:
    if not sys.platform.startswith("linux"):
        return  # elsewhere the limit has no effect, or there is none
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = MOST_MEMORY if most == resource.RLIM_INFINITY else min(MOST_MEMORY, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    serve()
