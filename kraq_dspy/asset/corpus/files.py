"""Finds the files of a corpus: a folder and those in it, without links that lead out and without indexes. It tells who
may read all of them."""

import logging
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.records import Failure

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """`source` is the path relative to the corpus folder, with forward slashes."""

    path: Path
    source: str


def find_files(root: Path) -> Iterator[CorpusFile | Failure]:
    """The files of a folder and of those in it, sorted by name within each; `root` alone if it is a file.

    Hidden files and folders are passed over, and so are indexes, which hold what was made of a corpus. A link to a
    file inside `root` is followed; links to folders are not, because they can lead in circles, and nothing outside
    `root` is read.
    """
    if root.is_dir():
        yield from _find(root, root.resolve(), "")
    else:
        yield _file(root, _readable(root.name))


def readers_of(corpus: Path) -> int:
    """The permission bits that an index of the corpus may have: those of the account that makes it, and of a group and
    of all others where they may read every file.

    >>> oct(readers_of(Path("private.txt")))  # doctest: +SKIP
    '0o700'
    """
    if os.name != "posix":
        return 0o777

    group, others = 0o070, 0o007
    groups: set[int] = set()
    for path in _paths(corpus):
        try:
            status = path.stat()
        except OSError:  # it went meanwhile, and is not read either
            continue
        need = stat.S_IXGRP if stat.S_ISDIR(status.st_mode) else stat.S_IRGRP
        groups.add(status.st_gid)
        if not status.st_mode & need:
            group = 0
        if not status.st_mode & need >> 3:
            others = 0

    if groups - {os.getegid()}:  # the group of the index will be another than that of a file
        group = 0o070 if others else 0
    return 0o700 | group | others


def _find(folder: Path, top: Path, above: str) -> Iterator[CorpusFile | Failure]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if not entry.name.startswith("."))
    except OSError as error:
        yield Failure("load", above.rstrip("/") or folder.name, unreadable(error, "folder"))
        return

    for name in names:
        path = folder / name
        source = above + _readable(name)
        if path.is_symlink():
            reason = _refuse_link(path, top)
            yield Failure("load", source, reason) if reason else _file(path, source)
        elif _is_index(path):
            logger.info("%s is an index; kraq skips it", source)
        elif path.is_dir():
            yield from _find(path, top, source + "/")
        else:
            yield _file(path, source)


def _is_index(path: Path) -> bool:
    """Whether it is an index, such as the one that is being made in the corpus's own folder."""
    return os.path.isfile(path / "manifest.json") and any(
        os.path.exists(path / part) for part in ("states", "draft", "index.db")
    )


def unreadable(error: OSError, what: str = "file") -> str:
    return f"The {what} cannot be read: {error.strerror or error}. Check its permissions and its disk."


def _refuse_link(path: Path, top: Path) -> str:
    """Why a link is not followed; "" for one to a file inside the corpus."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: Python 3.11 and 3.12 say so of a loop
        return f"The link leads nowhere or in a circle ({_readable(os.readlink(path))!r}). Remove or mend it."
    if not target.is_relative_to(top):
        return "The link leads out of the corpus folder and is not followed. Copy the file in, or load it by itself."
    if target.is_dir():
        return "The link leads to a folder inside the corpus, which is loaded under its own name."
    return ""


def _file(path: Path, source: str) -> CorpusFile | Failure:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return Failure("load", source, unreadable(error))
    if not stat.S_ISREG(mode):  # reading a pipe or a device could wait for ever
        return Failure("load", source, "Not a regular file but a pipe, socket or device. Take it out of the corpus.")
    return CorpusFile(path, source)


def _readable(name: str) -> str:
    """A file name whose bytes are not UTF-8 gets U+FFFD in their place, since ids are stored as UTF-8."""
    return normalised(os.fsencode(name).decode("utf-8", "replace"))


def _paths(corpus: Path) -> Iterable[Path]:
    """The files of the corpus and the folders on the way to them."""
    folders: set[Path] = {corpus} if corpus.is_dir() else set()
    for file in find_files(corpus):
        if not isinstance(file, CorpusFile):
            continue
        yield file.path
        parents = iter(file.path.parents)
        while corpus in (parent := next(parents)).parents:
            folders.add(parent)
    yield from folders
