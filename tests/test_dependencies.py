"""pyproject.toml declares what the package imports, and hints name extras that exist."""

import ast
import re
import sys
import tomllib
from pathlib import Path

from tests.sources import sources

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
DISTRIBUTION = {  # where a package is imported by another name than it is installed by
    "sklearn": "scikit-learn",
    "pptx": "python-pptx",
    "yaml": "pyyaml",
    "markdown_it": "markdown-it-py",
    "llama_index": "llama-index-core",
    "opentelemetry": "opentelemetry-api",
    "pydantic_core": "pydantic",  # which requires it in exactly one version
}


def declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~ ;]", line, maxsplit=1)[0].lower().replace("_", "-") for line in requirements}


def imported() -> dict[str, str]:
    """A file that imports it, by name of the distribution."""
    files: dict[str, str] = {}
    for each in sources().imports:
        top = each.module.split(".")[0]
        if top and top != "kraq_dspy" and top not in sys.stdlib_module_names:
            files[DISTRIBUTION.get(top, top).replace("_", "-")] = each.file
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


def test_a_package_of_one_version_has_a_file_whose_content_is_known() -> None:
    """Only weights are pinned: their package is a stranger's, and another version of it would be other weights."""
    lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
    pinned = {tuple(line.split("==")) for line in lines if "==" in line}
    known = {
        tuple(argument.value for argument in call.arguments[:2] if isinstance(argument, ast.Constant))
        for call in sources().calls
        if call.name == "PackageFile"
    }
    assert pinned == known
