"""Brings an index of an earlier schema version up to date: on a copy, which takes its place once it is whole.

    docs.kraq             the index, as it is until the copy is complete and checked
    docs.kraq.upgrading   the copy that the steps work on; its file `.upgrading` says that it is one
    docs.kraq.before      afterwards, the index as it was; it is never removed by itself

An interruption leaves the old index or, between the two renames at the end, both copies: the next run finishes those.
"""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.store import own_files, states
from kraq_dspy.asset.store.manifest import LABELLED, READABLE, read_fields, schema_version_of
from kraq_dspy.errors import IndexStateError

Step = Callable[[Path], None]
"""Changes the index in a folder, all its states with it, to a later schema version, which it writes to its manifests.
Nobody else reads or writes there. What it raises ends the upgrade."""

STEPS: dict[int, Step] = {}
"""The step that leads away from each earlier schema version. There is none yet: 6 and 7 are both of today."""

_MARK = ".upgrading"
_COPYING, _CHECKED = "copying", "checked"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """`former` and `present` are schema versions, equal if nothing was to be done. `kept` is the index as it was."""

    path: Path
    former: int
    present: int
    kept: Path | None = None


def upgrade(path: str | Path, *, faults_of: Callable[[Path], Sequence[str]]) -> Upgrade:
    """Bring an index up to date, and keep what it was beside it. `faults_of` checks the copy before it is taken.

    Raises IndexStateError, and leaves the index as it was, when there is no way from its version, when a step fails,
    when the copy is not whole, and when the disk is full; IndexLockedError while another process changes it.
    """
    root = Path(path).resolve()
    copy, before = root.with_name(f"{root.name}.upgrading"), _place_before(root)
    if not root.exists() and _mark_of(copy) == _CHECKED and before.is_dir():
        with states.writing_to(root.parent):
            copy.rename(root)
            _unmark(root)
        return Upgrade(root, schema_version_of(before), schema_version_of(root), before)

    former = schema_version_of(root)
    own_files.require_own(root)
    if former in READABLE:
        _forget_rests(root, copy)
        return Upgrade(root, former, former)
    _require_way(root, former)
    _require_free(before, "the index as it was before an earlier upgrade")

    lock = own_files.FileLock(root / states.LOCK)
    lock.acquire()
    try:
        _remove_copy(copy)
        try:
            present = _upgraded_copy(root, copy, faults_of)
            if sys.platform == "win32":  # there, a folder with an open file cannot be renamed
                lock.release()
            _swap(root, copy, before)
        except BaseException:
            if root.exists():  # and not interrupted between the renames
                shutil.rmtree(copy, ignore_errors=True)
            raise
    finally:
        lock.release()
    return Upgrade(root, former, present, before)


def _require_way(root: Path, version: int) -> None:
    if version > LABELLED:
        read_fields(root)  # which raises, and says that the library is to be upgraded
    if version not in STEPS:
        readable = " and ".join(map(str, READABLE))
        raise IndexStateError(
            f"{str(root)!r} has schema version {version}, this library reads {readable}, and no step leads there from "
            f"{version}. Index its corpus again: kraq index CORPUS --out NEW.kraq"
        )


def _require_free(place: Path, what: str) -> None:
    if os.path.lexists(place):
        raise IndexStateError(f"{str(place)!r} is in the way ({what}). Move or delete it.")


def _upgraded_copy(root: Path, copy: Path, faults_of: Callable[[Path], Sequence[str]]) -> int:
    """Make the copy, run the steps on it, and check it. Its schema version. Raises IndexStateError."""
    with states.writing_to(copy):
        _copy(root, copy)

    version = schema_version_of(copy)
    while version not in READABLE:
        _require_way(root, version)
        try:
            STEPS[version](copy)
            later = schema_version_of(copy)
            if later <= version:
                raise ValueError(f"it left the index at version {later}")
        except Exception as error:
            raise IndexStateError(
                f"The step from schema version {version} failed: {error}. {str(root)!r} is as it was."
            ) from error
        version = later

    faults = faults_of(copy)
    if faults:
        raise IndexStateError(
            f"The upgraded copy is not whole: {faults[0]}. {str(root)!r} is as it was. Repair it with the version of "
            "kraq-dspy that made it (kraq resume, kraq check --repair), or index its corpus again."
        )
    with states.writing_to(copy):
        (copy / _MARK).write_text(_CHECKED)
    return version


def _copy(root: Path, copy: Path) -> None:
    """Copies all but the lock and the views, which are made again when somebody asks. Raises OSError."""
    folders: list[Path] = []
    files: list[Path] = []
    for place, _, names in os.walk(root):
        folder = Path(place)
        if folder.is_relative_to(root / states.VIEWS):
            continue
        folders.append(folder)
        files += [folder / name for name in names if folder / name not in (root / states.LOCK, root / _MARK)]

    need = sum(file.stat().st_size for file in files)
    free = shutil.disk_usage(root.parent).free
    if free < need:
        raise IndexStateError(
            f"An upgrade needs {need / 1e6:,.1f} MB for a copy of {str(root)!r}, and its disk has {free / 1e6:,.1f} MB "
            "left. Free some space; the index is as it was."
        )

    copy.mkdir(mode=0o700)  # until its files are there, and the permissions of the index with them
    (copy / _MARK).write_text(_COPYING)
    for folder in folders[1:]:
        (copy / folder.relative_to(root)).mkdir()
    for file in files:
        shutil.copy2(file, copy / file.relative_to(root))
    for folder in folders:
        shutil.copystat(folder, copy / folder.relative_to(root))


def kept_by_upgrade(path: Path) -> Path | None:
    """The index as it was before an upgrade, if it is still there."""
    before = _place_before(path.resolve())
    return before if before.is_dir() else None


def _place_before(root: Path) -> Path:
    return root.with_name(f"{root.name}.before")


def _swap(root: Path, copy: Path, before: Path) -> None:
    with states.writing_to(root.parent):
        root.rename(before)
        try:
            copy.rename(root)
        except OSError:
            before.rename(root)
            raise
        _unmark(root)


def _forget_rests(root: Path, copy: Path) -> None:
    """Remove what a run that was ended right after the renames left in an index that is up to date."""
    if (root / _MARK).exists() or _mark_of(copy) is not None:
        with states.writing_to(root):
            _unmark(root)
            if _mark_of(copy) is not None:
                _remove_copy(copy)


def _remove_copy(copy: Path) -> None:
    """Remove what an earlier run left. Raises IndexStateError for a folder that is none of ours."""
    if _mark_of(copy) is None and not (copy.is_dir() and not any(copy.iterdir())):
        _require_free(copy, "the upgrade needs this name for its copy")
        return
    with states.writing_to(copy):
        shutil.rmtree(copy)


def _mark_of(copy: Path) -> str | None:
    """Tell how far a copy came; None for what is no copy."""
    if copy.is_symlink() or not (copy / _MARK).is_file():
        return None
    return (copy / _MARK).read_text("utf-8", errors="replace")


def _unmark(root: Path) -> None:
    (root / _MARK).unlink(missing_ok=True)
