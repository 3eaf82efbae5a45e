"""Finds the file of a model that runs in this process."""

from pathlib import Path


def local_file(name: str) -> Path:
    return Path(name).expanduser()
