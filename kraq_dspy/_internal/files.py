"""Writes files whole or not at all, appends and reads whole lines, and locks files against other processes."""

import errno
import gzip
import json
import os
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kraq_dspy.errors import KraqError

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int, shared: bool) -> None:  # exclusive always: Windows knows no other
        os.lseek(file, 1 << 30, os.SEEK_SET)  # a byte far behind the text, which others can then still read
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(file: int, shared: bool) -> None:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yields the path of a draft, to be made in the block as a file or a folder. At the block's end the draft takes the
    place of `path`.

    If the block raises, or the process is killed in it, `path` stays as it was; the next call removes a draft that a
    kill left behind. A file is on the disk when this returns, also after a power cut, and has the permissions and the
    group of the file that it replaces. A folder replaces no folder that holds something. For one writer at a time.
    Raises OSError.
    """
    draft = path.with_name(f".{path.name}.new")
    _remove(draft)
    try:
        yield draft
        if draft.is_file():
            _keep_permissions(path, draft)
            _flush(draft)
        os.replace(draft, path)
        if os.name == "posix":
            _flush(path.parent)  # the new name is on the disk only then
    finally:
        _remove(draft)


def append_line(path: Path, line: str) -> None:
    """The line is on the disk when this returns; a process that is killed meanwhile leaves all of it or nothing. A disk
    that fills up may leave a part of it, which `drop_torn_line` cuts off.

    The file and its folder are made if they are missing. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        to_write = memoryview(line.encode("utf-8", "surrogatepass") + b"\n")
        while to_write:  # a nearly full disk may take a part of it, and refuses the rest then
            to_write = to_write[file.write(to_write) :]
        os.fsync(file.fileno())


def drop_torn_line(path: Path) -> None:
    """A last line without its end, as a machine that went down leaves it, is cut off."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        content = file.read()
        if content and not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)


def json_objects(path: Path, failure: type[KraqError], what: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) of each line that is not blank, gzipped or not; the place is for messages: "FILE, line 3".

    Raises `failure` for a line that is no object, and for a file that cannot be read; its message calls the file by
    `what`, such as "the dev set".
    """
    try:
        with _opened_text(path) as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue

                place = f"{path.name}, line {number}"
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:  # or a number or a nesting beyond Python's limits
                    raise failure(f"{place} is not JSON ({error}); expected one object a line.") from error
                if not isinstance(row, dict):
                    raise failure(f"{place} is {type(row).__name__}; expected an object.")
                yield place, row
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise failure(f"Cannot read {what} {str(path)!r}: {getattr(error, 'strerror', None) or error}.") from error


def _opened_text(path: Path) -> IO[str]:
    # Lone surrogates, which models write now and then, are read as `append_line` wrote them.
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass")
    return path.open(encoding="utf-8", errors="surrogatepass")


def try_lock(file: int, *, shared: bool = False) -> bool | None:
    """Lock an open file for this descriptor alone, or together with others that share it, until it is closed.

    False if another one has it, None if the file system knows no locks. The system releases the lock when the
    process ends, however it ends. A second descriptor of the same process is refused too. Windows knows no shared lock.
    """
    try:
        _lock(file, shared)
    except OSError as error:
        return None if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP) else False
    return True


def _keep_permissions(former: Path, draft: Path) -> None:
    """Give the next version of a file the permissions of the file, so that nobody else may read
    it."""
    if os.name != "posix" or not former.is_file():
        return

    before, now = former.stat(), draft.stat()
    mode = stat.S_IMODE(before.st_mode)
    if before.st_gid != now.st_gid:
        try:
            os.chown(draft, -1, before.st_gid)
        except OSError:
            mode &= ~0o070  # this account cannot give it to that group, and its own was not meant
    draft.chmod(mode)


def _flush(path: Path) -> None:
    # Windows flushes only what may be written; elsewhere a file that is read-only may have taken the draft's place.
    file = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft)
    else:
        draft.unlink(missing_ok=True)
