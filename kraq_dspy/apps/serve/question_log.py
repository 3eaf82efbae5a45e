"""Keeps what people ask a server, if it was started to: `kraq serve DIR --log-questions FILE`.

A line of JSON for each question that was answered or refused: `question`, `index`, `time`, `refused`. Who asked, the
answer and the conversation are not kept. `kraq testset label FILE DIR` and `kraq testset coverage DIR FILE` read it.
"""

import errno
import os
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path

import orjson

from kraq_dspy.errors import ConfigError

PRIVATE = stat.S_IRUSR | stat.S_IWUSR
"""Only who runs the server reads and writes the file."""


_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
"""A pipe that nobody reads is an error, and nothing to wait for."""


class AskedLog:
    """Appends a line for each question to a file that nobody else may read. Safe for threads and processes.

    The file is opened for each line, so lines may be taken out of it, or the file away, while the server runs. What
    took its place is looked at again: nothing is written to a file that others may read. Raises ConfigError for a file
    that cannot be written, or that others may read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._append(b"")
        except OSError as error:
            raise ConfigError(f"The log of questions {str(path)!r} cannot be written: {error.strerror}.") from error

    def note(self, question: str, *, index: str, refused: bool) -> None:
        """Raises OSError if the disk takes no more, or others may read the file."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        line = {"question": question, "index": index, "time": time, "refused": refused}
        with self._lock:
            self._append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def _append(self, content: bytes) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _AT_ONCE, PRIVATE)
        try:
            mode = os.fstat(file).st_mode
            if not stat.S_ISREG(mode):
                raise OSError(errno.EINVAL, "it is no file but a pipe, socket or device")
            if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
                mode = stat.S_IMODE(mode)
                raise OSError(
                    errno.EPERM, f"others may read it (its mode is {mode:o}; expected 600). Run: chmod 600 {self._path}"
                )
            if content:
                _write_whole(file, content)
        finally:
            os.close(file)


def _write_whole(file: int, content: bytes) -> None:
    """Append by one call, so that lines of several processes do not mix; a part that a nearly full disk took is cut
    off again, since the next line would be glued to it."""
    n_written = os.write(file, content)
    if n_written < len(content):
        os.ftruncate(file, os.fstat(file).st_size - n_written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
