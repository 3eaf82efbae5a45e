"""Imports the public names of a package when they are first used, so that importing the package itself is quick."""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str | None) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from the imports under `if TYPE_CHECKING:` in its file.

    They declare the names once: for type checkers and editors, which read them, and for Python, which does not.

    >>> from kraq_dspy import integrations
    >>> get, names, _ = lazy_names("kraq_dspy.integrations", integrations.__file__)
    >>> names()
    ['LangChainRetriever', 'LlamaIndexRetriever', 'PassageRetriever', 'index_tools']
    """
    block = next(node for node in ast.parse(Path(str(file)).read_text("utf-8")).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    module_of = {each.name: str(node.module) for node in imports for each in node.names}
    public = sorted(module_of)

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module_of[name] == package:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(module_of[name]), name)

    return get, lambda: public, public
