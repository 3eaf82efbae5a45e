"""The examples in docstrings give what they say, in a folder with a small index and a file of triples."""

import doctest
import importlib
import json
import shutil
from pathlib import Path

import pytest

from kraq_dspy import Document, Workspace, build_index
from kraq_dspy.indexing.prepare.preparations import PREPARATIONS
from kraq_dspy.ports import SilentProgress
from tests.conftest import ROOT
from tests.kept import kept


def _modules_with_examples() -> list[str]:
    """Every module of the package with an example that is not skipped."""
    modules = []
    for path in sorted((ROOT / "kraq_dspy").rglob("*.py")):
        lines = path.read_text("utf-8").splitlines()
        if any(line.lstrip().startswith(">>> ") and "doctest: +SKIP" not in line for line in lines):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            modules.append(name.removesuffix(".__init__"))
    return modules


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = [Document("london", "London", "London is in England."), Document("ada", "Ada", "Ada lived in London.")]

    def build(path: Path) -> None:
        build_index(documents, path)
        with Workspace.open(path, write=True) as space:
            for name in ("instructed", "raptor"):
                PREPARATIONS[name].make(space, PREPARATIONS[name].options(), SilentProgress())

    return kept(f"{documents} of the examples", build, tmp_path_factory.mktemp("examples") / "ada.kraq")


@pytest.mark.parametrize("module", _modules_with_examples())
def test_the_examples_of_a_module_are_right(
    module: str, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    imported = importlib.import_module(module)
    if "ada.kraq" in Path(str(imported.__file__)).read_text("utf-8"):
        shutil.copytree(built, "ada.kraq")
    row = {"id": "p", "text": "Ada met Charles.", "triples": [["Ada", "met", "Charles"]]}
    Path("triples.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    result = doctest.testmod(imported)
    assert result.attempted
    assert not result.failed
