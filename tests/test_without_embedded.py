"""The package works without the room of the embedded model; what needs that model says in one sentence that it is not
there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraq_dspy.embedded_model import ROOM

ROOT = Path(__file__).resolve().parents[1]
OF_MODELS = (
    "tests/indexing/index/test_flawed_replies.py",  # an index by a model
    "tests/programs/test_traditional.py",
    "tests/programs/test_qa_rag.py",
    "tests/retrievers/test_hits.py",
)
IMPORTS_ALL = """
import importlib, pkgutil, kraq_dspy
names = [each.name for each in pkgutil.walk_packages(kraq_dspy.__path__, "kraq_dspy.")]
assert len(names) > 400 and not [name for name in names if name.startswith("kraq_dspy.embedded.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
"""
NEEDS_IT = {
    "model": "from kraq_dspy import make_lm; make_lm('embedded')('Who met Ada?')",
    "templates": (
        "from kraq_dspy.programs.kraq.asked_by import AskedBy, ListedPassages\n"
        "from kraq_dspy.settings import QuestionSettings\n"
        "AskedBy([], ListedPassages([]), QuestionSettings(asked_by='templates'), generator='m')"
    ),
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the same files, without the room."""
    folder = tmp_path_factory.mktemp("without")
    (folder / "kraq_dspy").mkdir()
    for path in (ROOT / "kraq_dspy").iterdir():
        if path.name not in ("embedded", "__pycache__"):
            (folder / "kraq_dspy" / path.name).symlink_to(path)
    for name in ("tests", "benchmarks", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def run(checkout: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )


def test_every_other_module_is_imported(checkout: Path) -> None:
    done = run(checkout, "-c", IMPORTS_ALL)
    assert done.returncode == 0, done.stderr


def test_the_tests_of_programs_retrievers_and_an_index_by_a_model_pass(checkout: Path) -> None:
    done = run(checkout, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *OF_MODELS)
    assert done.returncode == 0, done.stdout[-2000:]
    assert done.stdout.count(".") > 30


@pytest.mark.parametrize("needed_by", NEEDS_IT)
def test_what_needs_it_says_in_one_sentence_that_it_is_not_there(checkout: Path, needed_by: str) -> None:
    done = run(checkout, "-c", NEEDS_IT[needed_by])
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "ModelError: This installation of kraq-dspy has no embedded model" in last
    assert ROOM in last
