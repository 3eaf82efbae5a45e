"""Looks after the files of an index: none leads out of its folder, and those of a complete state are what they were.

The one process that changes an index holds its lock, which says what process that is, and nothing of what was typed.

    sums.json    of a state: the size and the CRC-32 of each file in it, and the checksum of this list

Files of up to 256 MB are read in full when a process first opens them (6 GB a second), larger ones by `kraq check`.
"""

import errno
import json
import os
import re
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from kraq_dspy._internal.files import replaced, try_lock
from kraq_dspy.asset.store import access
from kraq_dspy.errors import IndexLockedError, IndexStateError

PACKAGE = "kraq_dspy"
SUMS = "sums.json"
_NOT_SUMMED = (SUMS, "manifest.json")
_READ_AT_ONCE = 1 << 28  # bytes of a file that is read in full when it is opened
_BLOCK = 1 << 20
_ATTEMPTS, _PAUSE_S = 3, 0.05  # while another process puts a file into the state
_LOCK_ATTEMPTS, _LOCK_PAUSE_S = 10, 0.05  # while others hold the lock for a moment to look, or to keep a file

_FOREIGN = (
    "{!r} is no file of the index but a link, a pipe or a device, which may lead out of it. Nothing was read or "
    "written. Put the file itself in its place, or remove it."
)
Sum = tuple[int, int]
"""The size of a file in bytes, and the CRC-32 of its content."""

_compared: dict[Path, tuple[Any, ...]] = {}
"""Files of complete states that this process has read in full and found sound, with what they were then."""


def require_own(root: Path) -> None:
    """Raise IndexStateError if the index `root` holds a link, a pipe or a device: kraq reads and
    writes everything in an index, and a link may lead to any file of the person who opens it."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in _foreign(root):
            raise IndexStateError(_FOREIGN.format(str(path)))


def require_own_file(path: Path) -> None:
    """Do as `require_own` does, for one file, which need not be there, and for the log that SQLite
    keeps beside it."""
    for each in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        if each.is_symlink() or (each.exists() and not each.is_file()):
            raise IndexStateError(_FOREIGN.format(str(each)))


def require_unshared(path: Path) -> None:
    """Raises IndexStateError for a file that is to be changed in its place, and is another file, too, by a hard
    link."""
    if path.is_file() and path.stat().st_nlink > 1:
        raise IndexStateError(
            f"{str(path)!r} is another file, too, by a hard link (as backups make them), which would change with it. "
            f"Nothing was written. Make it a file of its own: cp {path} {path}.own && mv {path}.own {path}"
        )


def write_summed(path: Path, fields: dict[str, Any]) -> None:
    """Write fields as JSON with their checksum as "sum". Raises OSError."""
    with replaced(path) as draft:
        draft.write_text(json.dumps({**fields, "sum": _sum_of(fields)}, indent=2) + "\n", "utf-8")


def without_sum(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what `write_summed` was given, of the fields that are in the file. Raises ValueError
    for something else.

    Fields without "sum" may have been changed by hand.
    """
    plain = {name: value for name, value in fields.items() if name != "sum"}
    if fields.get("sum") not in (None, _sum_of(plain)):
        raise ValueError('it is not what was written; if you changed it yourself, take out its line "sum"')
    return plain


def write_sums(home: Path) -> None:
    """Note what the files of a state are, which will not change from now on. Raises OSError."""
    paths = (path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())
    _write(home, {name: _sum(home / name) for name in sorted(paths) if name not in _NOT_SUMMED})


def forget_sum(home: Path, name: str) -> None:
    """A file that is about to be replaced counts as absent until `add_sum`. Raises OSError."""
    sums = read_sums(home)
    if sums.pop(name, None) is not None:
        _write(home, sums)


def add_sum(home: Path, name: str) -> None:
    """Note what a file is that was put into a complete state. Raises OSError."""
    _write(home, {**read_sums(home), name: _sum(home / name)})


def read_sums(home: Path) -> dict[str, Sum]:
    """The sums by the file's path in the state. Raises IndexStateError."""
    path = home / SUMS
    try:
        fields = json.loads(path.read_text("utf-8"))
        if fields["sum"] != _sum_of(fields["files"]):
            raise ValueError("its checksum is another")
        return {name: (int(size), int(crc)) for name, (size, crc) in fields["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, OSError):
            require_descriptors(error)

        fault = getattr(error, "strerror", None) or "it is not what was written"
        raise IndexStateError(damage_text(path, fault)) from error


def own_file(home: Path, name: str) -> Path | None:
    """The file `name` of a complete state; None if the state has none, or one that is not finished.

    Raises IndexStateError when it is missing or is not what it was: of another size, or, if it is not very large,
    of another content.
    """
    for left in reversed(range(_ATTEMPTS)):
        expected = read_sums(home).get(name)
        if expected is None:
            return None
        path = home / name
        known = _identity(path, expected)
        if known is not None and _compared.get(path) == known:
            return path

        fault = _fault(path, expected, wholly=expected[0] <= _READ_AT_ONCE)
        if fault is None:
            if known is not None:
                _compared[path] = known
            return path
        if left:
            time.sleep(_PAUSE_S)
    raise IndexStateError(damage_text(home / name, fault or ""))


def damaged_files(home: Path) -> Iterator[tuple[str, str]]:
    """Every file of a complete state that is not what it was, and what is wrong with it; all are read in full."""
    try:
        sums = read_sums(home)
    except IndexStateError:
        yield SUMS, "it cannot be read"
        return
    for name, expected in sums.items():
        fault = _fault(home / name, expected, wholly=True)
        if fault is not None:
            yield name, fault


def require_descriptors(error: OSError | None = None) -> None:
    """Raises IndexStateError if this process may open no more files, which makes every file look damaged."""
    try:
        if error is None:
            os.close(os.open(os.devnull, os.O_RDONLY))
            return
    except OSError as refused:
        error = refused

    if error.errno in (errno.EMFILE, errno.ENFILE):
        raise IndexStateError(
            f"No more files can be opened: {error.strerror}. Nothing is damaged. Let the process open more (ulimit -n "
            "1024), or close what it holds open."
        ) from error


def _identity(path: Path, expected: Sum) -> tuple[Any, ...] | None:
    """What is another as soon as the file is replaced or written to; None if it cannot be looked at."""
    with suppress(OSError):
        status = path.stat()
        return expected, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return None


def _fault(path: Path, expected: Sum, *, wholly: bool) -> str | None:
    try:
        size = path.stat().st_size
        if size != expected[0]:
            return f"it has {size:,} bytes in place of {expected[0]:,}"
        return "its content has changed" if wholly and _sum(path) != expected else None
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        require_descriptors(error)
        return f"it cannot be read ({error.strerror})"


def _sum(path: Path) -> Sum:
    size = crc = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            size, crc = size + len(block), zlib.crc32(block, crc)
    return size, crc


def _sum_of(fields: dict[str, Any]) -> int:
    """Sum up the fields, whatever their order or the spaces between them."""
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())


def _write(home: Path, sums: dict[str, Sum]) -> None:
    files = {name: list(each) for name, each in sums.items()}
    with replaced(home / SUMS) as draft:
        draft.write_text(json.dumps({"files": files, "sum": _sum_of(files)}, indent=1), "utf-8")


def _foreign(folder: Path) -> Iterator[Path]:
    """Find whatever is neither a file nor a folder, at any depth; the folder itself may be reached
    by a link."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                with suppress(FileNotFoundError):  # of a writer that works meanwhile
                    yield from _foreign(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def damage_text(path: Path, fault: str) -> str:
    """Return what a message says about a damaged file of a state."""
    advice = (
        "index the corpus again." if path.name in ("index.db", "manifest.json") else "mend it: kraq check DIR --repair"
    )
    return f"{str(path)!r} is damaged: {fault}. Restore the index from a copy, or {advice}"


class FileLock:
    """Held from `acquire` to `release`, or until the process ends, however it ends.

    The file says who holds it and stays behind, unlocked; it needs no cleaning up.

    A second lock on the same file is refused in the same process too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def acquire(self) -> None:
        """Does nothing when it is held already. Raises IndexLockedError naming who keeps it for more than a moment, and
        IndexStateError where the file system knows no locks."""
        if self._file is not None:
            return

        require_own_file(self.path)
        is_new = not self.path.exists()
        try:
            file = open(self.path, "a+b")  # noqa: SIM115 (held until release)
        except OSError as error:
            require_descriptors(error)
            raise IndexStateError(
                f"Cannot lock {str(self.path)!r}: {error.strerror}. The folder must exist and be writable."
            ) from error

        for _ in range(_LOCK_ATTEMPTS):
            if (locked := try_lock(file.fileno())) is not False:
                break
            time.sleep(_LOCK_PAUSE_S)

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

        self._file = file
        if os.fstat(file.fileno()).st_nlink > 1:  # by a hard link it is another file, too, which is not ours to change
            return

        if is_new:
            access.follow(self.path.parent, self.path)
        file.seek(0)
        file.truncate()
        since = datetime.now(UTC).isoformat(timespec="seconds")
        process = {"pid": os.getpid(), "program": program_name(sys.argv), "since": since}
        file.write(json.dumps(process).encode())
        file.flush()

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def holder(path: Path) -> str | None:
    """Tell who holds the lock at this moment, in words; None if nobody does."""
    require_own_file(path)
    try:
        with path.open("rb") as file:
            return _holder(path) if try_lock(file.fileno()) is False else None
    except FileNotFoundError:
        return None


def lock_holders(path: Path) -> list[str]:
    """The processes that hold a lock on the file, where the system tells (Linux): "process 7 (kraq serve)"."""
    try:
        status = path.stat()
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return []
    inode = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    fields = [line.replace("->", "").split() for line in locks]
    pids = {int(each[4]) for each in fields if len(each) > 5 and each[5] == inode and each[4].isdecimal()}
    return [f"process {pid}{_program_of(pid)}" for pid in sorted(pids)]


def _program_of(pid: int) -> str:
    """What the process is, in brackets; "" if the system does not tell."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return ""
    if Path(arguments[0]).name.startswith("python"):
        arguments = arguments[2:] if arguments[1:2] == ["-m"] else arguments[1:]
    return f" ({program_name(arguments)})"


def program_name(arguments: Sequence[str]) -> str:
    """Return what a process is, without what was typed behind it: that may be a key, a password or
    a question.

    >>> program_name(["/usr/bin/kraq", "serve", "docs.kraq", "--token", "secret"])
    'kraq serve'
    >>> program_name(["/home/ada/work.py", "secret"])
    'work.py'
    """
    path = Path(arguments[0] if arguments else "")
    name = path.parent.name if path.name == "__main__.py" else path.name
    if name not in ("kraq", "kraq.exe", PACKAGE):
        return "python" if name in ("", "-c", "-") else name
    command = arguments[1] if len(arguments) > 1 else ""
    return f"kraq {command}" if re.fullmatch("[a-z]{2,12}", command) else "kraq"


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        who = "this process" if holder["pid"] == os.getpid() else f"process {holder['pid']}"
        return f"{who} ({holder['program']}) since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it is just being written, or the system keeps it from us
        return "another process"
