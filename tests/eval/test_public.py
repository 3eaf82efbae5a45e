"""Whoever writes `from kraq_dspy.eval import ...` gets what the editor shows."""

import ast
from pathlib import Path

import kraq_dspy.eval as public


def test_the_names_that_type_checkers_see_are_those_that_can_be_imported() -> None:
    tree = ast.parse(Path(public.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(seen) == public.__all__ == dir(public)
    assert all(getattr(public, name) is not None for name in public.__all__)
