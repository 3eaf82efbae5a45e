"""What DSPy moved, by name: the parts of it that are not public and that this library stands on."""

import ast
import importlib
from pathlib import Path

import dspy
import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "kraq_dspy"
PUBLIC = ("dspy", "dspy.lm15", "dspy.utils.exceptions", "dspy.utils.callback", "dspy.streaming")


def imports_of_dspy() -> list[tuple[str, str, list[str]]]:
    """(module of DSPy, where this library imports it, names that it takes)."""
    imports = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            where = str(path.relative_to(PACKAGE))
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dspy":
                imports.append((node.module or "", where, [alias.name for alias in node.names]))
            elif isinstance(node, ast.Import):
                imports += [(each.name, where, []) for each in node.names if each.name.split(".")[0] == "dspy"]
    return imports


PRIVATE = sorted(
    {
        (module, name)
        for module, where, names in imports_of_dspy()
        if where == "_internal/dspy_internals.py"
        for name in names
    }
)


@pytest.mark.parametrize(("module", "name"), PRIVATE)
def test_dspy_still_has(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name), f"DSPy {dspy.__version__} moved {module}.{name}"


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (dspy.ChatAdapter, "_make_json_adapter_fallback"),  # KraqAdapter asks again in its own form
        (dspy.ChatAdapter, "format_system_message"),
        (dspy.Module, "named_sub_modules"),
        (dspy.LM, "copy"),
    ],
)
def test_dspy_still_calls_the_method_that_this_library_replaces(owner: type, name: str) -> None:
    assert callable(getattr(owner, name, None)), f"DSPy {dspy.__version__} has no {owner.__name__}.{name}"


def test_a_compiled_part_is_still_marked_so_and_passed_over() -> None:
    from kraq_dspy._internal.dspy_internals import thawed

    program = dspy.ChainOfThought("question -> answer")
    outer = dspy.Module()
    outer.step = program
    program._compiled = True
    assert outer.named_predictors() == []
    with thawed(outer):
        assert [name for name, _ in outer.named_predictors()] == ["step.predict"]
    assert outer.named_predictors() == []


def test_no_other_file_imports_what_dspy_keeps_private() -> None:
    elsewhere = [
        (where, module)
        for module, where, names in imports_of_dspy()
        if where != "_internal/dspy_internals.py"
        and (module not in PUBLIC or any(name.startswith("_") for name in names))
    ]
    assert elsewhere == []
