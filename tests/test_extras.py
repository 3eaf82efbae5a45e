"""Every extra that an error names is one that can be installed."""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMING = ("MissingExtraError", "needs", "import_extra")


def test_every_extra_that_an_error_names_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {}
    for path in (ROOT / "kraq_dspy").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            extra: ast.expr | None = None
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in NAMING:
                extra = node.args[1]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_NEEDED":
                extra = node.value.elts[0]  # type: ignore[attr-defined]
            if isinstance(extra, ast.Constant):
                named[extra.value] = path.name
    assert {"embedded", "eval", "train"} <= named.keys()
    assert {extra: file for extra, file in named.items() if extra not in extras} == {}
