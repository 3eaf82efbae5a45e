"""No file is ever unpickled, and no code of a model's repository is run: read from the sources themselves."""

import ast
import os
import pickle
from pathlib import Path

import pytest

from kraq_dspy.errors import StateError
from kraq_dspy.programs import ExtractGraph
from tests.sources import sources

UNPICKLERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}


def test_nothing_imports_what_unpickles() -> None:
    unpicklers = [each for each in sources().imports if each.module.split(".")[0] in UNPICKLERS]
    assert sources().imports
    assert unpicklers == []


def test_loaders_that_could_unpickle_are_told_not_to() -> None:
    assert sources().calls
    for call in sources().calls:
        place = f"{call.file}:{call.line}"
        options = {
            name: ast.unparse(call.keywords[name])
            for name in ("weights_only", "allow_pickle", "trust_remote_code")
            if name in call.keywords
        }
        if call.name == "torch.load":
            assert options.get("weights_only") == "True", place
        assert options.get("allow_pickle", "False") == "False", place
        assert options.get("trust_remote_code", "False") == "False", place
        assert call.name not in ("eval", "exec", "pd.read_pickle", "yaml.load", "yaml.unsafe_load"), place


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
