"""Loads a library that takes a second or more when a test first uses it: every worker imports all files of tests."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


class Lazily:
    """`sklearn.metrics` as `Lazily("sklearn.metrics")`: a module that is imported with its first attribute."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # as pytest asks of all that stands in a file of tests
            raise AttributeError(name)
        return getattr(import_module(self._name), name)


def lazily(name: str, extra: str) -> Any:
    """The module, or, without the extra that brings it, a skip of all tests of a file."""
    if find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"needs {name}: pip install 'kraq-dspy[{extra}]'", allow_module_level=True)
    return Lazily(name)
