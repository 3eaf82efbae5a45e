"""No file is ever unpickled, and no code of a model's repository is run: read from the sources themselves."""

import ast
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraq_dspy.errors import StateError
from kraq_dspy.programs import ExtractGraph

ROOT = Path(__file__).resolve().parents[2]
UNPICKLERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}


def calls() -> Iterator[tuple[str, str, dict[str, ast.expr]]]:
    """(place, "torch.load", keywords) of every call in the package, and every import as a call of "import"."""
    for path in sorted((ROOT / "kraq_dspy").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call):
                yield place, ast.unparse(node.func), {word.arg: word.value for word in node.keywords if word.arg}
            elif isinstance(node, ast.Import):
                yield from ((place, f"import {alias.name}", {}) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield place, f"import {node.module}", {}


def test_nothing_imports_what_unpickles() -> None:
    calls_of_pickle = [
        place for place, call, _ in calls() if call.split()[-1].split(".")[0] in UNPICKLERS and "import" in call
    ]
    assert calls_of_pickle == []


def test_loaders_that_could_unpickle_are_told_not_to() -> None:
    for place, call, keywords in calls():
        arguments = {name: ast.unparse(value) for name, value in keywords.items()}
        if call == "torch.load":
            assert arguments.get("weights_only") == "True", place
        assert arguments.get("allow_pickle", "False") == "False", place
        assert arguments.get("trust_remote_code", "False") == "False", place
        assert call not in ("eval", "exec", "pd.read_pickle", "yaml.load", "yaml.unsafe_load"), place


class Trap:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (self.path,)


def test_a_pickled_program_is_refused_before_it_runs(tmp_path: Path) -> None:
    (tmp_path / "program.pkl").write_bytes(pickle.dumps(Trap(str(tmp_path / "sprung"))))
    with pytest.raises(StateError, match="no program state"):
        ExtractGraph().load(tmp_path / "program.pkl")
    assert not (tmp_path / "sprung").exists()
