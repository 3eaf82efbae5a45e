"""Warns of public names that will go, and of a DSPy that this version was not tested with.

A name goes two minor versions after the first one that warns of it: what warns since 1.1 goes with 1.3. A test fails
as soon as one has outlived that (`docs/stability.md`).
"""

import re
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple, TypeVar

Thing = TypeVar("Thing", bound=Callable[..., object])

MINOR_VERSIONS = 2
"""How many minor versions a name stays, with the one that first warns."""

DSPY = ("3.4.1", "3.5")
"""The first version of DSPy that this library was tested with, and the first that it was not; pyproject.toml says the
same to pip."""


class Former(NamedTuple):
    """A name that will go: the version that first warned of it, and the module and the name to use instead."""

    since: str
    module: str
    name: str


def goes_with(since: str) -> str:
    """The version in which a name is gone.

    >>> goes_with("1.1")
    '1.3'
    """
    major, minor = map(int, since.split("."))
    return f"{major}.{minor + MINOR_VERSIONS}"


def message(name: str, since: str, instead: str) -> str:
    return f"{name} is deprecated since kraq-dspy {since} and goes with {goes_with(since)}. Use {instead} instead."


def warn_of(name: str, since: str, instead: str, stacklevel: int = 3) -> None:
    """Warn of a name that is used now. `stacklevel` leads to the line that uses it, as in `warnings.warn`."""
    warnings.warn(message(name, since, instead), DeprecationWarning, stacklevel=stacklevel)


def going(name: str, since: str, instead: str) -> Callable[[Thing], Thing]:
    """Mark a function or a class: it warns when it is called, and type checkers strike it out."""
    from typing_extensions import deprecated  # some milliseconds of `import kraq_dspy`

    return deprecated(message(name, since, instead))


def warn_of_dspy() -> None:
    """Warn, once for each process, if DSPy is installed in a version that this library was not tested with."""
    try:
        installed = version("dspy")
    except PackageNotFoundError:  # the import of dspy says so
        return
    first, beyond = map(_numbers, DSPY)
    if not first <= _numbers(installed) < beyond:
        requirement = f"dspy>={DSPY[0]},<{DSPY[1]}"
        warnings.warn(
            f"dspy {installed} is installed, and this version of kraq-dspy was tested with {requirement}. What it does "
            f"may fail or differ. Install a tested one: pip install '{requirement}'. Or look for a newer kraq-dspy: "
            "pip install -U kraq-dspy",
            RuntimeWarning,
            stacklevel=3,
        )


def _numbers(version: str) -> tuple[int, ...]:
    """The release of a version, without what says that it comes before or after it.

    >>> _numbers("3.5.0rc1")
    (3, 5, 0)
    """
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found.group().split("."))) if found else ()
