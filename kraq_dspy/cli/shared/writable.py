"""Checks that folders can be written before anything heavy is loaded or paid for."""

import os
from pathlib import Path

from kraq_dspy.errors import ConfigError


def require_writable(*folders: Path) -> None:
    """Raises ConfigError for a folder that cannot be made or written. Makes nothing."""
    for folder in folders:
        existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
        if not existing.is_dir():
            raise ConfigError(f"{str(folder)!r} cannot be a folder: {str(existing)!r} is a file.")
        if not os.access(existing, os.W_OK | os.X_OK) or os.statvfs(existing).f_flag & os.ST_RDONLY:
            raise ConfigError(f"{str(folder)!r} cannot be written: you may not write to {str(existing)!r}.")
