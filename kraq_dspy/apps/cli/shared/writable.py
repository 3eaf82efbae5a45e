"""Checks that folders and files can be written before anything heavy is loaded or paid for."""

import tempfile
from pathlib import Path

from kraq_dspy.errors import ConfigError


def require_writable(*folders: Path) -> None:
    """Raises ConfigError for a folder that cannot be made or written. Leaves nothing there."""
    for folder in folders:
        _require_room(folder.absolute(), folder)


def require_writable_file(file: Path) -> None:
    """Raises ConfigError for a file that cannot be made or replaced. Leaves nothing there."""
    if file.is_dir():
        raise ConfigError(f"{str(file)!r} is a folder; --out names a file here.")
    _require_room(file.absolute().parent, file)


def _require_room(folder: Path, target: Path) -> None:
    """A file without a name is made, since rights do not say everything: root may write to /proc, and cannot."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not existing.is_dir():
        raise ConfigError(f"{str(target)!r} cannot be written: {str(existing)!r} is a file. Choose another --out.")
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise ConfigError(
            f"{str(target)!r} cannot be written: nothing can be made in {str(existing)!r} ({error.strerror}). Choose "
            "another --out."
        ) from error
