"""Tests that the parts of DSPy which are not public, and which this library uses, are where they were."""

import importlib

import dspy
import pytest

from tests.sources import Import, Sources, sources

PUBLIC = ("dspy", "dspy.lm15", "dspy.utils.exceptions", "dspy.utils.callback", "dspy.streaming")


INTERNALS = "_internal/dspy_internals.py"


def imports_of_dspy(found: Sources) -> list[Import]:
    return [each for each in found.imports if each.module.split(".")[0] == "dspy"]


PRIVATE = sorted({(each.module, name) for each in imports_of_dspy(sources(INTERNALS)) for name in each.names})


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
        (each.file, each.module)
        for each in imports_of_dspy(sources())
        if each.file != INTERNALS and (each.module not in PUBLIC or any(name.startswith("_") for name in each.names))
    ]
    assert elsewhere == []
