"""Writes docs/reference/api.md and a page for each module from the public names: `python scripts/api_reference.py`."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).resolve().parents[1] / "docs"
FOLDER = DOCS / "reference"

WRITTEN = "<!-- Written by scripts/api_reference.py from the public names: change docstrings, or the names. -->"
HEAD = f"""# API

{WRITTEN}

What can be imported, by the place it is imported from. Programs and retrievers are compared in [Which program
when](../guide/programs.md); records are described in the [data model](../datamodel.md), settings in
[Settings](settings.md).

| import from | what is there |
|---|---|
"""

PLACES = {
    "kraq_dspy": "The first hour: `import kraq_dspy as kraq`.",
    "kraq_dspy.programs": "Programs that answer, their steps, and the pipeline that makes an index.",
    "kraq_dspy.retrievers": "What finds passages.",
    "kraq_dspy.signatures": "The prompt of every step.",
    "kraq_dspy.eval": "Measuring: [metrics](../guide/evaluate.md#metrics), judges, data sets, intervals.",
    "kraq_dspy.optimize": "DSPy's optimizers on a dev set, before and after ([guide](../guide/optimizing.md)).",
    "kraq_dspy.finetune": "Pairs to learn from, and LoRA adapters ([guide](../guide/finetuning.md)).",
    "kraq_dspy.extend": "What [programs](../extend/program.md) and other parts of your own are made with.",
    "kraq_dspy.testing": "Whether a part of your own keeps its contract.",
    "kraq_dspy.apps": "An index in the shape of other frameworks.",
    "kraq_dspy.errors": "The whole error tree.",
}


ASSEMBLED = ("Index", "Workspace")
"""Classes whose methods stand in several files, and are shown together."""


def pages() -> dict[Path, str]:
    """The pages by their files: the table of places, and a page for each place."""
    seen = _shown_elsewhere()
    rows = []
    pages = {}
    for place, about in PLACES.items():
        name = place.rpartition(".")[2]
        rows.append(f"| [`{place}`](api/{name}.md) | {about} |\n")
        entries = "\n".join(_entries(importlib.import_module(place), seen))
        told = about.replace("](../", "](../../")
        pages[FOLDER / "api" / f"{name}.md"] = f"# `{place}`\n\n{WRITTEN}\n\n{told}\n\n{entries}\n"
    return {FOLDER / "api.md": HEAD + "".join(rows), **pages}


def _shown_elsewhere() -> set[str]:
    """What pages written by hand show; a thing has one place."""
    by_hand = (page for page in DOCS.rglob("*.md") if FOLDER not in page.parents)
    return {name for page in by_hand for name in re.findall(r"(?m)^::: (\S+)$", page.read_text("utf-8"))}


def _entries(module: ModuleType, seen: set[str]) -> Iterator[str]:
    """One block for every class and function that no place before had, and a line with the names of other values."""
    others = []
    for name in public_names(module):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            identifier = f"{value.__module__}.{value.__qualname__}"
            if identifier.startswith("kraq_dspy") and identifier not in seen:
                seen.add(identifier)
                yield f"::: {identifier}"
                if value.__name__ in ASSEMBLED:
                    yield "    options:"
                    yield "      inherited_members: true"
        else:
            others.append(f"`{name}`")
    if others:
        yield f"\nValues: {', '.join(others)}."


def public_names(module: ModuleType) -> list[str]:
    """Those that the module lists, else those that it defines itself."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


if __name__ == "__main__":
    (FOLDER / "api").mkdir(exist_ok=True)
    for file, text in pages().items():
        file.write_text(text, "utf-8")
