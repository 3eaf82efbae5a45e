"""Locks an index for the one process that changes it."""

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from kraq_dspy._internal.files import try_lock
from kraq_dspy.asset.store.own_files import require_own_file
from kraq_dspy.errors import IndexLockedError, IndexStateError

_ATTEMPTS, _PAUSE_S = 10, 0.05


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
        """Does nothing when it is held already. Raises IndexLockedError naming who keeps it for more than a moment, and
        IndexStateError where the file system knows no locks."""
        if self._file is not None:
            return
        require_own_file(self.path)
        try:
            file = open(self.path, "a+b")  # noqa: SIM115 (held until release)
        except OSError as error:
            raise IndexStateError(
                f"Cannot lock {str(self.path)!r}: {error.strerror}. The folder must exist and be writable."
            ) from error
        for _ in range(_ATTEMPTS):  # others hold it for a moment to look, or to keep a file
            if (locked := try_lock(file.fileno())) is not False:
                break
            time.sleep(_PAUSE_S)
        if locked is None:
            file.close()
            raise IndexStateError(
                f"The file system of {str(self.path.parent)!r} knows no locks, so two processes could change the index "
                "at once. It can be read there; change it on a local disk, or mount the folder with locks."
            )
        if not locked:
            file.close()
            raise IndexLockedError(
                f"{str(self.path.parent)!r} is being changed by {_holder(self.path)}. One process at a time may change "
                "an index; any number may ask it meanwhile. Wait for it, or end it; its lock goes with it."
            )
        file.seek(0)
        file.truncate()
        since = datetime.now(UTC).isoformat(timespec="seconds")
        process = {"pid": os.getpid(), "command": " ".join(sys.orig_argv), "since": since}
        file.write(json.dumps(process).encode())
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def holder(path: Path) -> str | None:
    """Who holds the lock at this moment, in words; None where nobody does."""
    require_own_file(path)
    try:
        with path.open("rb") as file:
            return _holder(path) if try_lock(file.fileno()) is False else None
    except FileNotFoundError:
        return None


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        who = "this process" if holder["pid"] == os.getpid() else f"process {holder['pid']}"
        return f"{who} ({holder['command']}) since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it is just being written, or the system keeps it from us
        return "another process"
