"""CHANGELOG.md begins with the version of pyproject.toml."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_newest_version_comes_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    _, *sections = re.split(r"(?m)^## ", text)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert sections[0].split()[0] == version
