"""One process at a time: a lock on a file that the system releases when its holder ends, however it ends."""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from kraq_dspy.errors import IndexLockedError, IndexStateError

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> None:
        file.seek(1 << 30)  # a byte far behind the text, which others can then still read
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """Held from `acquire` to `release`. The file says who holds it and stays behind, unlocked; it needs no cleaning up.

    A second lock on the same file is refused in the same process too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    @property
    def held(self) -> bool:
        return self._file is not None

    def acquire(self) -> None:
        """Does nothing when it is held already. Raises IndexLockedError naming the holder."""
        if self._file is not None:
            return
        try:
            file = open(self.path, "a+b")  # noqa: SIM115 (held until release)
        except OSError as error:
            raise IndexStateError(
                f"Cannot lock {str(self.path)!r}: {error.strerror}. The folder must exist and be writable."
            ) from error
        try:
            _try_lock(file)
        except OSError:
            file.close()
            raise IndexLockedError(
                f"{str(self.path.parent)!r} is in use by {_holder(self.path)}. One process at a time may change an "
                "index, or search the vectors in its folder. Wait for it, or end it; its lock goes with it. "
                "To share an index between processes, keep its vectors on a Qdrant server ([store] url)."
            ) from None
        file.seek(0)
        file.truncate()
        file.write(json.dumps(_this_process()).encode())
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _this_process() -> dict[str, str | int]:
    return {
        "pid": os.getpid(),
        "command": " ".join(sys.orig_argv),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        who = "this process" if holder["pid"] == os.getpid() else f"process {holder['pid']}"
        return f"{who} ({holder['command']}) since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it is just being written, or the system keeps it from us
        return "another process"
