"""`kraq optimize` works without an extra, whatever its target."""

from pathlib import Path

import pytest

from kraq_dspy.optimize.steps import STEPS
from kraq_dspy.optimize.targets import make_target
from kraq_dspy.workspace import Workspace
from tests.default_install.conftest import kraq


def test_every_step_is_made_without_an_extra(folder: Path) -> None:
    with Workspace.open(folder / "wiki.kraq") as space:
        made = {name: next(iter(make_target(name, space).metrics)) for name in STEPS}
    assert made["question-generation"] == made["decomposition"] == "relevance"


@pytest.mark.parametrize("target", ["extraction", "decomposition", "combined"])
def test_a_target_is_optimized_without_an_extra(target: str, folder: Path, tmp_path: Path) -> None:
    words = ["optimize", target, "--index", "wiki.kraq", "--out", str(tmp_path / "state.json"), "--force"]
    done = kraq([*words, "--demos", "1"], folder)
    assert done.code == 0, done.text[-1500:]


def test_relevance_is_by_the_packaged_encoder(folder: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "state.json")
    done = kraq(["optimize", "question-generation", "--index", "wiki.kraq", "--out", out, "--force"], folder)
    assert "relevance(all-MiniLM-L6-v2 int8)" in done.text
    assert done.code == 0


def test_an_optimizer_that_needs_an_extra_names_it(folder: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "state.json")
    done = kraq(["optimize", "description", "--index", "wiki.kraq", "--out", out, "--optimizer=mipro"], folder)
    assert done.code == 1
    assert "pip install 'kraq-dspy[optimize]'" in done.text
