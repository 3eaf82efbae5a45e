"""Imports the public names of a package when they are first used, so that importing the package itself is quick."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy_names(
    package: str,
    places: Mapping[str, Sequence[str]],
    modules: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of the package that is called `package`.

    `places` has the names by the module that defines them; `modules` are offered under a name as they are.

    >>> get, names, _ = lazy_names("kraq_dspy", {"kraq_dspy.records": ["Chunk"]}, {"metrics": "kraq_dspy.eval.metrics"})
    >>> names(), get("Chunk").__module__
    (['Chunk', 'metrics'], 'kraq_dspy.records')
    """
    module_of = {name: module for module, names in places.items() for name in names}
    modules = modules or {}
    public = sorted({*module_of, *modules})

    def get(name: str) -> Any:
        if name in modules:
            return importlib.import_module(modules[name])
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(module_of[name]), name)

    return get, lambda: public, public
