"""CHANGELOG.md begins with the version of pyproject.toml, and tells each version on one screen."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCREEN = 60
"""Lines: what a browser shows of a file at once."""


def test_the_newest_version_comes_first_and_each_has_one_screen() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    _, *sections = re.split(r"(?m)^## ", text)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert sections[0].split()[0] == version
    assert {each.split()[0]: each.count("\n") for each in sections if each.count("\n") > SCREEN} == {}
