"""Every extra that an error names is one that can be installed."""

import ast
import tomllib
from pathlib import Path

from kraq_dspy.errors import MissingExtraError
from tests.sources import sources

ROOT = Path(__file__).resolve().parents[1]
NAMING = ("MissingExtraError", "needs", "import_extra")


def test_every_extra_that_an_error_names_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    extra_arguments = [(call.file, call.arguments[1]) for call in sources().calls if call.name in NAMING]
    extra_constants = [
        (file, value.elts[0])
        for file, name, value in sources().constants
        if name == "_NEEDED" and isinstance(value, ast.Tuple)
    ]
    assert len(extra_constants) > 1
    named = {
        extra.value: file for file, extra in [*extra_arguments, *extra_constants] if isinstance(extra, ast.Constant)
    }
    assert {"transformers", "eval", "train"} <= named.keys()
    assert {extra: file for extra, file in named.items() if extra and extra not in extras} == {}  # "": no extra


def test_a_missing_package_is_installed_by_its_extra_or_with_the_library() -> None:
    assert "Install it with: pip install 'kraq-dspy[eval]'" in str(MissingExtraError("bert", "eval", "BERTScore"))
    assert "Install it with: pip install kraq-dspy" in str(MissingExtraError("minilm", "", "The encoder"))
