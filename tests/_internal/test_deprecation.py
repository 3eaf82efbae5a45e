"""Tests that names which go warn for two minor versions, and that a DSPy nobody tested with is told of."""

import ast
import importlib
import subprocess
import sys
import tomllib
import warnings
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from kraq_dspy._internal import deprecation
from kraq_dspy._internal.deprecation import DSPY, Former, goes_with, going, warn_of_dspy
from kraq_dspy._internal.lazy import lazy_names
from tests.sources import sources

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def _since_of_names() -> dict[str, str]:
    """The version since which each deprecated name of the package warns, by the file and the line."""
    place = {"warn_of": 1, "going": 1, "Former": 0}
    arguments = (
        (f"{call.file}:{call.line}", call.arguments[place[call.name]]) for call in sources().calls if call.name in place
    )
    return {where: str(since.value) for where, since in arguments if isinstance(since, ast.Constant)}


def test_no_deprecated_name_outlives_its_two_minor_versions() -> None:
    noted = _since_of_names()
    assert noted["build.py:6"] == "1.0"
    now = tuple(map(int, PROJECT["version"].split(".")[:2]))
    over = {place for place, since in noted.items() if now >= tuple(map(int, goes_with(since).split(".")))}
    assert over == set(), "remove these names, or they stay for ever"


@pytest.mark.parametrize(("since", "gone"), [("1.0", "1.2"), ("1.9", "1.11"), ("2.1", "2.3")])
def test_a_name_goes_two_minor_versions_later(since: str, gone: str) -> None:
    assert goes_with(since) == gone


def test_a_former_name_of_a_package_warns_on_the_line_that_uses_it_and_works() -> None:
    get, names, _ = lazy_names("kraq_dspy", {}, former={"Passage": Former("1.1", "kraq_dspy.records", "Chunk")})
    with pytest.warns(
        DeprecationWarning, match=r"kraq_dspy\.Passage .* since kraq-dspy 1\.1 .* 1\.3\. Use kraq_dspy\.records\.Chunk"
    ):
        found = get("Passage")
    assert found.__name__ == "Chunk"
    assert names() == []
    with pytest.raises(AttributeError):
        get("Nonsense")


def test_a_function_and_a_class_that_go_warn_when_they_are_called() -> None:
    @going("kraq_dspy.old", "1.1", "kraq_dspy.new")
    def old(number: int) -> int:
        return number + 1

    @going("kraq_dspy.Old", "1.1", "kraq_dspy.New")
    class Old:
        pass

    with pytest.warns(DeprecationWarning, match="kraq_dspy.old is deprecated") as noted:
        assert old(1) == 2
    assert noted[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="kraq_dspy.Old is deprecated"):
        Old()


def test_the_former_name_of_indexing_warns() -> None:
    sys.modules.pop("kraq_dspy.build", None)
    with pytest.warns(DeprecationWarning, match=r"kraq_dspy\.indexing") as noted:
        former = importlib.import_module("kraq_dspy.build")
    assert former.build_index is importlib.import_module("kraq_dspy.indexing").build_index
    assert noted


@pytest.mark.parametrize(
    ("installed", "warns"),
    [
        ("3.4.0", True), ("3.4.1", False), ("3.4.9", False), ("3.4.2rc1", False), ("3.4.10", False),
        ("3.5.0rc1", True), ("3.5", True), ("3.5.0", True), ("3.10.0", True), ("4.0", True), ("2.6.27", True),
    ],
)  # fmt: skip
def test_a_dspy_outside_of_the_range_is_told_of_with_the_way_out(
    installed: str, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deprecation, "version", lambda name: {"dspy": installed}[name])
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        warn_of_dspy()
    assert bool(noted) is warns
    for each in noted:
        assert f"dspy {installed} is installed" in str(each.message)
        assert "pip install 'dspy>=3.4.1,<3.5'" in str(each.message)


def test_importing_the_library_looks_at_dspy_and_does_not_load_it() -> None:
    command = (
        "import importlib.metadata as metadata, sys; own = metadata.version\n"
        "metadata.version = lambda name: '3.5.0' if name == 'dspy' else own(name)\n"
        "import kraq_dspy; assert 'dspy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert "dspy 3.5.0 is installed" in done.stderr


def test_the_range_is_the_one_that_pip_is_told() -> None:
    [line] = [line for line in PROJECT["dependencies"] if Requirement(line).name == "dspy"]
    assert str(Requirement(line).specifier) == str(Requirement(f"dspy>={DSPY[0]},<{DSPY[1]}").specifier)


def test_these_tests_run_with_a_dspy_of_the_range() -> None:
    assert Requirement(f"dspy>={DSPY[0]},<{DSPY[1]}").specifier.contains(version("dspy"))
