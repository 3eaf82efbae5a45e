"""Reads files in another process: one that exhausts memory or time, or crashes a library, costs itself alone.

The process starts with the first file that needs it, reads one file after the other, and ends when nobody has asked for
a minute. It has limits of memory (Linux) and of time for a file.
"""

import atexit
import contextlib
import functools
import importlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from kraq_dspy.asset.corpus.boilerplate import Linked
from kraq_dspy.asset.corpus.formats.rows import BadRow, Reader, ReadSettings, Row
from kraq_dspy.errors import MissingExtraError
from kraq_dspy.records import Heading

MOST_MEMORY = 4 << 30  # bytes of address space
SECONDS = 600  # for one file
_PATIENCE = 60  # seconds that the process waits for the next file
_IDLE = 75  # the code with which it ends then

_START = "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline()); from {module} import serve; serve()"
_LENGTH = struct.Struct("<Q")


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
        request = _written([reader.__module__, reader.__qualname__, str(path.absolute()), asdict(settings)])
        with self._lock:
            reply = self._asked(request)
        if isinstance(reply, BadRow):
            return [reply]
        rows, failure, is_ending = json.loads(reply)  # what a harmful file made of the other process may not run here
        if is_ending:
            self.end()
        if failure is not None:
            raise OSError(*failure)
        return [_row_of(kind, values) for kind, values in rows]

    def _asked(self, request: bytes) -> bytes | BadRow:
        while True:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            timer = threading.Timer(SECONDS, process.kill)
            timer.start()
            try:
                _send(process.stdin, request)
                reply = _receive(process.stdout)
            except OSError:  # it ended before it took the request
                reply = None
            finally:
                is_late = not timer.is_alive()
                timer.cancel()
            if reply is not None:
                return reply
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            code = process.returncode
            self._discard()
            if code != _IDLE:  # else it ended just before it was asked
                return BadRow(_why(code, is_late=is_late))

    def end(self) -> None:
        with self._lock:
            self._discard()

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._owner != os.getpid():  # of a process that was copied from this one, the other process is not its own
            self._process, self._owner = None, os.getpid()
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START.format(module=__name__)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert self._process.stdin is not None
            self._process.stdin.write(_written(sys.path) + b"\n")
            self._process.stdin.flush()
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
atexit.register(_worker.end)


def serve() -> None:
    """Reads the files that standard input names, and writes their rows to standard output, until the input ends."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no row
    with contextlib.suppress(KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends whoever asks
    _limit_memory()
    while True:
        alarm = threading.Timer(_PATIENCE, os._exit, (_IDLE,))
        alarm.daemon = True
        alarm.start()
        request = _receive(sys.stdin.buffer)
        alarm.cancel()
        if request is None:
            return
        module, name, path, settings = json.loads(request)
        reader: Reader = getattr(importlib.import_module(module), name)
        rows, failure, is_ending = _outcome(reader, Path(path), ReadSettings(**settings))
        written = [[type(row).__name__, asdict(row)] for row in rows]
        _send(out, _written([written, failure, is_ending]))


def _outcome(reader: Reader, path: Path, settings: ReadSettings) -> tuple[Sequence[Row | BadRow], Any, bool]:
    """The rows, the number and text of an error of the system, and whether this process had better end."""
    try:
        return list(reader(path, settings)), None, False
    except MissingExtraError as error:
        return [BadRow(str(error))], None, False
    except OSError as error:
        return [], (error.errno, error.strerror), False
    except MemoryError:
        return [BadRow(_TOO_MUCH)], None, True


def _written(values: Any) -> bytes:
    """The values as one line of JSON; a set is a list there."""
    return json.dumps(values, default=list).encode("ascii")


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


def _send(stream: Any, data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: Any) -> bytes | None:
    """The next message; None at the end of the stream."""
    head = _exactly(stream, _LENGTH.size)
    return None if head is None else _exactly(stream, _LENGTH.unpack(head)[0])


def _exactly(stream: BinaryIO, count: int) -> bytes | None:
    data = stream.read(count)
    return data if len(data) == count else None
