"""pyproject.toml declares what the package imports, and hints name extras that exist."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
DISTRIBUTION = {  # where a package is imported by another name than it is installed by
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "llama_index": "llama-index-core",
    "opentelemetry": "opentelemetry-api",
    "pydantic_core": "pydantic",  # which requires it in exactly one version
}


def declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~ ;]", line, maxsplit=1)[0].lower().replace("_", "-") for line in requirements}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / "kraq_dspy").rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))


def imported() -> dict[str, str]:
    """A file that imports it, by name of the distribution."""
    files: dict[str, str] = {}
    for where, tree in trees():
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                top = name.split(".")[0]
                if top != "kraq_dspy" and top not in sys.stdlib_module_names:
                    files[DISTRIBUTION.get(top, top).replace("_", "-")] = where
    return files


def test_every_package_that_is_imported_is_declared() -> None:
    everything = declared(PROJECT["dependencies"]) | {
        name for extra, lines in EXTRAS.items() if extra not in ("dev", "vllm") for name in declared(lines)
    }
    assert {name: where for name, where in imported().items() if name not in everything} == {}


def test_every_extra_that_an_installation_hint_names_exists() -> None:
    texts = [
        path.read_text("utf-8") for folder in ("kraq_dspy", "docs") for path in (ROOT / folder).rglob("*.[mp][dy]")
    ]
    texts.append((ROOT / "README.md").read_text("utf-8"))
    named = {
        extra.strip()
        for text in texts
        for extras in re.findall(r"kraq-dspy\[([a-z, ]+)\]", text)
        for extra in extras.split(",")
    }
    assert named
    assert named <= EXTRAS.keys()
