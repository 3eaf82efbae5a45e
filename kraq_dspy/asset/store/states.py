"""Keeps an index as states: folders that never change once they are complete, and the draft of the next one.

    manifest.json    which state is the last complete one, and what it is
    states/7/        that state: index.db, vectors/, sums.json (see `store/own_files.py`),
                     and manifest.json, on which its readers hold a lock
    draft/           what a writer is making, or a killed one has left: the next writer goes on with it
    lock             held by the one process that writes
    views/7-8e5f...  an index of what some documents of the state 7 alone lead to; it goes with that state

A reader opens a complete state and needs no other lock: nothing in it changes. A writer copies the state (all but the
database is linked, since those files are replaced and never changed), works on the copy, and renames it; then one file,
`manifest.json`, takes the place of the former one. A state that is no longer the last one goes when its last reader has
gone, however it went.
"""

import errno
import logging
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kraq_dspy._internal.files import replaced, try_lock
from kraq_dspy.asset.store import access, manifest as manifests, own_files
from kraq_dspy.errors import IndexStateError

logger = logging.getLogger(__name__)

STATES, DRAFT, LOCK = "states", "draft", "lock"
DATABASE, VECTORS = "index.db", "vectors"
VIEWS = "views"
_ATTEMPTS, _PAUSE_S = 100, 0.01  # to open a state while it is replaced again and again


@dataclass
class Lease:
    """A state held for reading: its folder stays while this is open. `fields` are those of its manifest."""

    home: Path
    fields: dict[str, Any]
    file: IO[bytes] | None  # None on a draft

    @property
    def is_constant(self) -> bool:
        """Whether this is a complete state, in which nothing changes, and not a draft."""
        return self.file is not None

    def path(self, name: str) -> Path | None:
        """Tell where the file `name` is, None if there is none. Raises IndexStateError for one
        that is damaged."""
        if self.is_constant:
            return own_files.own_file(self.home, name)
        return path if (path := self.home / name).is_file() else None

    def release(self) -> None:
        if self.file is not None:
            self.file.close()


def hold_state(root: Path, *, unfinished: bool = False) -> Lease:
    """The last complete state of an index of this schema, or what there is of one that was never completed.

    With `unfinished`, what is being written, or was left half-way, if there is such a draft. Raises IndexStateError.
    """
    for _ in range(_ATTEMPTS):
        fields = manifests.read_fields(root)
        if (unfinished or not fields.get("state")) and (draft := _draft_fields(root)) is not None:
            return Lease(root / DRAFT, draft, None)
        if fields.get("state") and (file := _held(root / STATES / fields["state"])) is not None:
            return Lease(root / STATES / fields["state"], fields, file)
        time.sleep(_PAUSE_S)  # it has been replaced since the manifest was read
    return _hold_newest(root)


def require_free(root: Path, readers: int = access.ALL) -> None:
    """The folder for a new index, made if it is not there, for `readers` (`files.readers_of`). What a writer of the
    first draft left is no hindrance.

    Raises IndexStateError when it holds an index or anything else already.
    """
    own_files.require_own(root)
    try:
        access.make_folder(root, readers)
        present = set(os.listdir(root))
    except OSError as error:
        raise IndexStateError(
            f"Cannot make the folder {str(root)!r}: {error.strerror}. Choose another place for the index."
        ) from error

    if manifests.MANIFEST in present:
        raise IndexStateError(
            f"{str(root)!r} is an index already. Open it to continue, delete the folder to start again, "
            "or choose another place."
        )

    foreign = {name for name in present if not name.startswith((DRAFT, LOCK, f".{manifests.MANIFEST}"))}
    if foreign:
        raise IndexStateError(
            f"{str(root)!r} is not empty and not an index (it holds {sorted(foreign)[0]!r}). "
            "Choose a folder that does not exist yet, such as corpus.kraq."
        )


def begin_empty(root: Path) -> Path:
    """The folder of the first draft, with nothing in it."""
    with writing_to(root):
        _remove(root / DRAFT)
        (root / DRAFT).mkdir()
        access.follow(root, root / DRAFT)
    return root / DRAFT


def begin_draft(root: Path, *, mend: bool = False) -> Lease:
    """Make the draft that a writer works on, or find the one to go on with.

    For the process that holds the lock. `mend` skips damaged files that can be made again, and
    accepts a database with damaged records.

    Raises IndexStateError for a state that is damaged, and when the disk is full: then nothing was changed.
    """
    with writing_to(root):
        fields = manifests.read_fields(root)
        for later in _numbers(root, above=int(fields.get("state") or 0)):  # complete, but its writer was killed before
            fields = manifests.read_fields(root / STATES / str(later))  # it could announce it
            manifests.write_fields(root, fields)

        draft = _draft_fields(root)
        if draft is not None and draft["state"] == fields["state"]:
            if not fields["state"] or _is_sound(root / DRAFT, "mode=rw"):
                return Lease(root / DRAFT, draft, None)
            logger.warning("%s is torn; kraq uses the last complete state", root / DRAFT)

        lease = hold_state(root)
        try:
            damaged = dict(own_files.damaged_files(lease.home))
            for name, fault in damaged.items():
                if not mend or (name == DATABASE and not _is_sound(lease.home)):
                    raise IndexStateError(own_files.damage_text(lease.home / name, fault))

            new = root / f"{DRAFT}.new"
            _remove(new)
            known = {DATABASE} if own_files.SUMS in damaged else own_files.read_sums(lease.home).keys()
            _copy(lease.home, new, {DATABASE, *known} - (damaged.keys() - {DATABASE}))
            manifests.write_fields(new, lease.fields)
            _remove(root / DRAFT)
            access.follow(root, new)
            new.rename(root / DRAFT)
        finally:
            lease.release()
        return Lease(root / DRAFT, lease.fields, None)


def publish(root: Path) -> str:
    """Make the draft, whose files are closed, the last complete state; its name. For the process that has the lock."""
    with writing_to(root):
        state = str(int(manifests.read_fields(root).get("state") or 0) + 1)
        fields = {**manifests.read_fields(root / DRAFT), "state": state}
        of_readers = (*(root / DRAFT).glob("*-wal"), *(root / DRAFT).glob("*-shm"))  # who may take them with them
        for left in (*of_readers, *(root / DRAFT).rglob(".*.new*")):  # or of a writer that was killed
            left.unlink(missing_ok=True)
        own_files.write_sums(root / DRAFT)
        manifests.write_fields(root / DRAFT, fields)
        access.follow(root, root / DRAFT)
        if not (root / STATES).exists():
            (root / STATES).mkdir()
            access.follow(root, root / STATES)
        (root / DRAFT).rename(root / STATES / state)
        manifests.write_fields(root, fields)

    give_back(root)
    return state


def install(made: Path, home: Path) -> None:
    """Put a file of vectors into a state. For the process that has the lock; readers keep what they have opened."""
    name = f"{VECTORS}/{made.name}"
    with writing_to(home):
        (home / VECTORS).mkdir(exist_ok=True)
        own_files.forget_sum(home, name)
        with replaced(home / name) as draft:
            shutil.copyfile(made, draft)
        access.follow(home.parents[1], home / VECTORS)
        own_files.add_sum(home, name)


def has_draft(root: Path) -> bool:
    """Whether a change was begun that is not complete."""
    return _draft_fields(root) is not None


def is_read(root: Path) -> bool:
    """Whether some process holds the last complete state of the index `root`."""
    try:
        file = _held(root / STATES / str(manifests.read_fields(root).get("state")), alone=True)
    except (IndexStateError, OSError):
        return False
    if file is None:
        return True
    file.close()
    return False


def give_back(root: Path) -> None:
    """Remove states that are neither the last one nor read by anybody, and their views. Any process may, at any
    time."""
    try:
        current = int(manifests.read_fields(root).get("state") or 0)
        for old in _numbers(root, below=current):
            folder = root / STATES / str(old)
            file = _held(folder, alone=True)
            if file is not None or not (folder / manifests.MANIFEST).exists():  # or another one's removal was killed
                with file or nullcontext():
                    shutil.rmtree(folder, ignore_errors=True)  # what stays, goes next time

        for view in _views(root):
            if not view.name.startswith((f"{current}-", ".")) and not is_read(view):
                shutil.rmtree(view, ignore_errors=True)
    except PermissionError:  # a reader that may not write: the writer's affair
        return
    except OSError as error:
        if error.errno != errno.EROFS:
            raise


def former_states(root: Path) -> dict[str, list[str]]:
    """The states of an index, before the last complete one, that are still there, by their folder in it: "states/7".
    With each the processes that hold it, as far as the system tells, and none if it waits for the next command that may
    write there."""
    give_back(root)
    current = int(manifests.read_fields(root).get("state") or 0)
    return {
        f"{STATES}/{number}": own_files.lock_holders(root / STATES / str(number) / manifests.MANIFEST)
        for number in _numbers(root, below=current)
    }


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Errors of the system become IndexStateError that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise IndexStateError(
                f"The disk with {str(folder)!r} is full. Free some space and go on (to change an index takes room for "
                "a second copy of its index.db); what was written before is kept."
            ) from error
        if error.errno == errno.EFBIG:
            raise IndexStateError(
                f"The process may write no file so large in {str(folder)!r}: {error.strerror}. Let it write larger "
                "files (ulimit -f unlimited) and go on; what was written before is kept."
            ) from error
        raise IndexStateError(
            f"Cannot write in {str(folder)!r}: {error.strerror}. The folder must exist and be writable; what was "
            "written before is kept."
        ) from error


def _is_sound(home: Path, options: str = "mode=ro&immutable=1") -> bool:
    """Whether SQLite can read the database in full."""
    uri = f"{(home / DATABASE).absolute().as_uri()}?{options}"
    with suppress(sqlite3.Error), closing(sqlite3.connect(uri, uri=True)) as connection:
        if connection.execute("PRAGMA integrity_check").fetchone() == ("ok",):
            return True
    return False


def _draft_fields(root: Path) -> dict[str, Any] | None:
    try:
        return manifests.read_fields(root / DRAFT)
    except IndexStateError:
        if (root / DRAFT / manifests.MANIFEST).exists():
            raise
        return None  # there is none, or it has just become a state


def _held(folder: Path, *, alone: bool = False) -> IO[bytes] | None:
    """The manifest of a state, locked with other readers or alone; None when it is gone, going, or in use."""
    try:
        file = open(folder / manifests.MANIFEST, "r+b" if alone else "rb")  # noqa: SIM115 (held until release)
    except FileNotFoundError:
        return None

    if sys.platform == "win32":  # there, a folder with an open file cannot be removed
        return file

    locked = try_lock(file.fileno(), shared=not alone)
    if locked is None and not alone:
        return file  # a file system without locks: nothing can say that this state is read
    if locked and os.fstat(file.fileno()).st_nlink:
        return file
    file.close()
    return None


def _hold_newest(root: Path) -> Lease:
    """Hold the newest state of a copy that was made while the index was written: its manifest may be older or newer
    than its states."""
    for number in reversed(_numbers(root)):
        folder = root / STATES / str(number)
        if (file := _held(folder)) is not None:
            return Lease(folder, manifests.read_fields(folder), file)
    raise IndexStateError(
        f"{str(root)!r} is damaged: it has no {DATABASE} of any complete state. Restore it from a copy, or delete the "
        "folder and index again."
    )


def _views(root: Path) -> list[Path]:
    """Views of any state: folders whose names begin with its number."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted((root / VIEWS).iterdir())
    return []


def _numbers(root: Path, *, above: int = 0, below: int | None = None) -> list[int]:
    with suppress(FileNotFoundError):
        numbers = sorted(int(name) for name in os.listdir(root / STATES) if name.isdecimal())
        return [number for number in numbers if number > above and (below is None or number < below)]
    return []


def _copy(home: Path, new: Path, names: Iterable[str]) -> None:
    """All but the database is linked where the file system can: those files are replaced, never changed."""
    (new / VECTORS).mkdir(parents=True)
    for name in names:
        if name != DATABASE:
            with suppress(OSError):  # no links on this file system
                os.link(home / name, new / name)
                continue
        shutil.copyfile(home / name, new / name)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
