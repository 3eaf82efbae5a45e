"""Keeps an index no more open to other accounts than the texts that it is made from.

The folder of an index decides for everything in it: who may read the folder may read its files, and no one else.
A new folder is opened to those alone who may read the whole corpus. What an administrator gives a group afterwards
(`chgrp`, `chmod g+rx`) stays: files that are made later follow the folder.

Windows knows no such bits; there nothing is done.
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ALL = 0o777
_FILE = 0o666  # the bits of a folder that its files have as well


def of_folder(path: Path) -> int:
    """The permission bits of an index: those that another index, made of it, may have."""
    return stat.S_IMODE(path.stat().st_mode) if os.name == "posix" else ALL


def make_folder(path: Path, readers: int = ALL) -> None:
    """Make the folder of an index, open to `readers` and to nobody whom the umask leaves out.

    A folder that is there keeps what its group may do; others lose what `readers` do not allow them. Inside another
    index it is as open as that one. Raises OSError.
    """
    try:
        path.mkdir(parents=True, mode=readers)
    except FileExistsError:
        withdraw(path, readers)
    else:
        follow_index(path)


def withdraw(root: Path, readers: int) -> None:
    """Take from all others what `readers` do not allow them, in the whole folder. A group keeps what it has.

    Files of another account stay as they are.
    """
    if os.name != "posix" or readers & 0o007 or not stat.S_IMODE(root.stat().st_mode) & 0o007:
        return
    for path in (root, *root.rglob("*")):
        with suppress(OSError):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o007)


def follow(root: Path, path: Path) -> None:
    """Give a file or a folder that was made in the index `root`, and all that is in it, the access and the group of
    `root`. What belongs to another account stays as it is."""
    if os.name != "posix":
        return

    status = root.stat()
    mode = stat.S_IMODE(status.st_mode)
    inside = path.rglob("*") if path.is_dir() else ()
    for each in (path, *inside):
        with suppress(OSError):
            own = each.stat()
            if own.st_gid != status.st_gid:
                os.chown(each, -1, status.st_gid)
            right_mode = mode if stat.S_ISDIR(own.st_mode) else mode & _FILE
            if stat.S_IMODE(own.st_mode) != right_mode:
                each.chmod(right_mode)


@contextmanager
def copied_from(root: Path) -> Iterator[None]:
    """Files and folders that are made in the block, wherever they are, are no more open than the index `root`: they
    hold copies of its texts. What is there already keeps its access. Blocks of several threads wait for each other."""
    if os.name != "posix":
        yield
        return
    with _COPYING:
        before = os.umask(0o077)
        os.umask(before | _closed_bits(root))
        try:
            yield
        finally:
            os.umask(before)


def guard_copies() -> None:
    """From now on, whatever this process makes is no more open than each of the indexes that it has opened: for a
    command, which opens an index to write of it."""
    global _guards_copies
    _guards_copies = os.name == "posix"


def note_opened(root: Path) -> None:
    """The index `root` was opened (`guard_copies`)."""
    if _guards_copies:
        before = os.umask(0o077)
        os.umask(before | _closed_bits(root))


_COPYING = threading.RLock()  # the mask is one for the whole process
_guards_copies = False


def _closed_bits(root: Path) -> int:
    """The permission bits that a copy of the index must not have. A group gets nothing that is not the group of the
    index, unless all others may read it."""
    status = root.stat()
    closed = ~stat.S_IMODE(status.st_mode) & 0o077
    if status.st_gid != os.getegid() and closed & 0o007:
        closed |= 0o070
    return closed


def follow_index(path: Path) -> None:
    """Do as `follow` does, for what was made beside the manifest of an index; elsewhere nothing
    happens."""
    if path.parent.joinpath("manifest.json").is_file():
        follow(path.parent, path)
