"""Copies the files of a state, as cheaply as the file system allows."""

import errno
import mmap
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

if sys.platform == "linux":
    import fcntl

_LARGE = 1 << 28  # bytes from which on a copy goes past the page cache
_BLOCK = 1 << 24  # bytes written at once; a whole number of pages
_PAGE = mmap.PAGESIZE
_CLONE = 0x40049409  # FICLONE of linux/fs.h


def copy_file(source: Path, target: Path) -> None:
    """`target` becomes what `source` is; in between it may be there in part.

    File systems that share blocks between files (btrfs, XFS) copy nothing. Elsewhere a large file is written past the
    page cache: a database of 8 GB would push out what is read, and be written by the system in pieces of a page, which
    takes twice as long. Raises OSError.
    """
    with source.open("rb", buffering=0) as old, target.open("wb", buffering=0) as new:
        is_large = os.fstat(old.fileno()).st_size >= _LARGE
        if _shares_blocks(old, new) or (is_large and _written_directly(old, new)):
            return
    shutil.copyfile(source, target)


def _shares_blocks(old: IO[bytes], new: IO[bytes]) -> bool:
    if sys.platform == "linux":
        with suppress(OSError):  # the file system cannot
            fcntl.ioctl(new, _CLONE, old.fileno())
            return True
    return False


def _written_directly(old: IO[bytes], new: IO[bytes]) -> bool:
    """Whether the file system could; direct writes are of whole pages, so the rest of the last one is not."""
    if sys.platform != "linux":
        return False
    flags = fcntl.fcntl(new, fcntl.F_GETFL)
    block = memoryview(mmap.mmap(-1, _BLOCK))  # memory that begins with a page
    try:
        fcntl.fcntl(new, fcntl.F_SETFL, flags | os.O_DIRECT)
        while n_bytes := _filled(old, block):
            pages = n_bytes - n_bytes % _PAGE
            _write(new, block[:pages])
            if pages < n_bytes:
                fcntl.fcntl(new, fcntl.F_SETFL, flags)
                _write(new, block[pages:n_bytes])
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        return False
    finally:
        fcntl.fcntl(new, fcntl.F_SETFL, flags)
    return True


def _filled(file: IO[bytes], view: memoryview) -> int:
    """How many bytes were read: fewer than asked for only at the end of the file."""
    n_bytes = 0
    while n_bytes < len(view) and (more := os.readv(file.fileno(), [view[n_bytes:]])):
        n_bytes += more
    return n_bytes


def _write(file: IO[bytes], view: memoryview) -> None:
    while view:
        view = view[file.write(view) :]
