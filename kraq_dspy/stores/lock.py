"""Locks an index for one process at a time."""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from kraq_dspy.errors import IndexLockedError, IndexStateError
from kraq_dspy.files import try_lock


class FileLock:
    """Held from `acquire` to `release`, or until the process ends, however it ends.

    The file says who holds it and stays behind, unlocked; it needs no cleaning up.

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
        if not try_lock(file.fileno()):
            file.close()
            raise IndexLockedError(
                f"{str(self.path.parent)!r} is in use by {_holder(self.path)}. One process at a time may change an "
                "index, or search the vectors in its folder. Wait for it, or end it; its lock goes with it. "
                "To share an index between processes, keep its vectors on a Qdrant server ([store] url)."
            )
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
