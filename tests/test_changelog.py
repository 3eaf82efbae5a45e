"""CHANGELOG.md begins with the version of pyproject.toml; new names of its table are used, old ones nowhere."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_newest_version_comes_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    _, *sections = re.split(r"(?m)^## ", text)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert sections[0].split()[0] == version


SOURCES = ("kraq_dspy", "docs", "examples", "deploy", "README.md", "SKILL.md", "Makefile")
KINDS = {".py", ".md", ".toml", ".html", ".js", ".ipynb", ""}


def used() -> str:
    """All text of the package and the pages."""
    paths = [
        path for source in SOURCES for path in ((ROOT / source).rglob("*") if "." not in source else [ROOT / source])
    ]
    files = [path for path in [*paths, ROOT / "Makefile"] if path.is_file() and path.suffix in KINDS]
    return "\n".join(path.read_text("utf-8") for path in files)


def names_of(cell: str) -> list[str]:
    """What can be looked for: options, commands, addresses, keys and names of code, not words."""
    found = [name.removesuffix("@k") for name in re.findall("`([^`]+)`", cell)]
    return [name for name in found if re.search(r"[-_./=\[]|kraq |[a-z][A-Z]", name)]


def stands(name: str, text: str) -> bool:
    return name in text and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def test_new_names_are_used_and_old_ones_nowhere() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| (.+) \| (.+) \|$", changes.split("| before | now |")[1].split("\n\n")[0])
    before = [name for old, _ in rows for name in names_of(old)]
    now = [name for _, new in rows for name in names_of(new)]
    assert len(before) > 10
    assert len(now) > 10
    text = used()
    assert [name for name in before if stands(name, text)] == []
    assert [name for name in now if not stands(name, text)] == []
