"""Tests which rooms of the package stand behind each public name: whoever imports the name reads, or waits for, these.

`tests/doors.toml` lists them: `imported` with the name, and `later` by an import inside a function. A room that is new
there is either an import to take back, or one to be listed after some thought: python -m tests.test_doors
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import kraq_dspy
from tests.sources import PACKAGE, Import, sources

LISTING = Path(__file__).with_name("doors.toml")
ROOT = "kraq_dspy"
Behind = Mapping[str, tuple[str, str]]
"""Each room with the import that leads into it: (importing module, imported module)."""


def module_of(file: str) -> str:
    return ".".join([ROOT, *file.removesuffix(".py").split("/")]).removesuffix(".__init__")


@cache
def modules() -> frozenset[str]:
    return frozenset(module_of(path.relative_to(PACKAGE).as_posix()) for path in PACKAGE.rglob("*.py"))


@cache
def lazy_places() -> Mapping[str, str]:
    """The module of each name that a package offers without importing it ("kraq_dspy.workspace.Workspace")."""
    places = {}
    for each in sources().imports:
        if each.for_types and each.file.endswith("__init__.py"):
            for name in each.names:
                inner = f"{each.module}.{name}"
                places[f"{module_of(each.file)}.{name}"] = inner if inner in modules() else each.module
    return places


def targets_of(each: Import) -> Iterator[str]:
    """The modules that Python runs for an import: the one that is named, those in which its names are, and the packages
    around them."""
    named = [f"{each.module}.{name}" for name in each.names]
    inner = [name if name in modules() else lazy_places().get(name, each.module) for name in named]
    for module in [each.module, *inner]:
        yield from with_packages(module)


def with_packages(module: str) -> list[str]:
    """The packages around a module but the outermost, and the module."""
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(2, len(parts) + 1)]


@cache
def edges(*, with_functions: bool) -> Mapping[str, list[str]]:
    imported: dict[str, list[str]] = {}
    for each in sources().imports:
        is_counted = not each.for_types and (with_functions or not each.in_function)
        if is_counted and each.module.split(".")[0] == ROOT:
            of_module = imported.setdefault(module_of(each.file), [])
            of_module.extend(target for target in targets_of(each) if target in modules())
    return imported


def rooms_behind(name: str, *, with_functions: bool = False) -> Behind:
    """The rooms that a public name brings, nearest first; a package's name those of all names that it offers."""
    arrows = edges(with_functions=with_functions)
    place = lazy_places()[f"{ROOT}.{name}"]
    offered = [each for offer, each in lazy_places().items() if offer.rpartition(".")[0] == place]
    if f"{place}.{name}" in lazy_places():  # the package offers it in its turn
        offered = [lazy_places()[f"{place}.{name}"]]
    seen = {*with_packages(place), *(module for each in offered for module in with_packages(each))}
    rooms = {each.split(".")[1]: (f"the name {name}", each) for each in sorted(seen)}
    waiting = sorted(seen)
    while waiting:
        importing = waiting.pop(0)
        for target in arrows.get(importing, ()):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
                rooms.setdefault(target.split(".")[1], (importing, target))
    return rooms


@cache
def listed() -> Mapping[str, Mapping[str, list[str]]]:
    return tomllib.loads(LISTING.read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(kraq_dspy.__all__))
def test_no_room_stands_behind_a_public_name_that_is_not_listed(name: str) -> None:
    imported = rooms_behind(name)
    later = rooms_behind(name, with_functions=True)
    own = listed()[name]

    new = [arrow for room, arrow in imported.items() if room not in own["imported"]]
    new += [arrow for room, arrow in later.items() if room not in (*own["imported"], *own["later"], *imported)]
    assert [f"{importing} imports {target}" for importing, target in new] == []

    gone = [room for room in own["imported"] if room not in imported]
    gone += [room for room in own["later"] if room not in later or room in imported]
    assert gone == [], "no longer behind it, or no longer as it is listed"


def test_the_listing_has_the_public_names_and_no_other() -> None:
    assert sorted(listed()) == sorted(kraq_dspy.__all__)


def write_listing() -> None:
    lines = ["# Rooms behind each public name; tests/test_doors.py says what for."]
    for name in sorted(kraq_dspy.__all__):
        imported = sorted(rooms_behind(name))
        later = sorted(set(rooms_behind(name, with_functions=True)) - set(imported))
        lines += ["", f"[{name}]", f"imported = {imported}".replace("'", '"'), f"later = {later}".replace("'", '"')]
    LISTING.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    write_listing()
