"""Imports the public names of a package when they are first used, as its stub (`__init__.pyi`) declares them.

The stub is the one place where a public name is written, each as `from kraq_dspy.records import Chunk as Chunk`: type
checkers and editors read it as it is, and `__getattr__`, `__dir__` and `__all__` are made of it.
"""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of the package whose `__name__` and `__file__` these are."""
    home: dict[str, tuple[str, str]] = {}
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            home |= {each.asname: (node.module, each.name) for each in node.names if each.asname}

    def getattr_(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = home[name]
        holder = importlib.import_module(module)
        if module != package and hasattr(holder, attribute):
            return getattr(holder, attribute)
        return importlib.import_module(f"{module}.{attribute}")

    return getattr_, lambda: sorted(home), sorted(home)
