"""Tests the names that `import kraq_dspy as kraq` offers: each exists, no other shows, their types are public."""

import ast
import importlib
import inspect
import pydoc
import re
import subprocess
import sys
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import kraq_dspy as kraq
import kraq_dspy.eval
from kraq_dspy.workspace.registry import PROGRAMS

PACKAGES = [
    "kraq_dspy",
    "kraq_dspy.indexing",
    "kraq_dspy.eval",
    "kraq_dspy.extend",
    "kraq_dspy.finetune",
    "kraq_dspy.programs",
]
MODULES = [
    *PACKAGES,
    "kraq_dspy.errors",
    "kraq_dspy.optimize",
    "kraq_dspy.retrievers",
    "kraq_dspy.settings",
    "kraq_dspy.signatures",
]
ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_exists_and_no_other_shows(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        getattr(module, name)
    assert dir(module) == sorted(module.__all__)
    assert not [name for name in module.__all__ if name.startswith("_")]


LAZY = [
    path for path in sorted((ROOT / "kraq_dspy").rglob("__init__.py")) if "lazy_names(\n" in path.read_text("utf-8")
]


@pytest.mark.parametrize("file", LAZY, ids=lambda file: file.parent.name)
def test_the_names_that_type_checkers_see_are_those_that_are_imported_when_used(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    [for_type_checkers] = [node for node in tree.body if isinstance(node, ast.If)]
    shown = {
        (line.module, name.name)
        for line in for_type_checkers.body
        if isinstance(line, ast.ImportFrom)
        for name in line.names
    }
    [call] = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_names"]
    imported = {(module, name) for module, names in ast.literal_eval(call.args[1]).items() for name in names}
    for module in ast.literal_eval(call.args[2]).values() if len(call.args) > 2 else ():
        imported.add((module.rpartition(".")[0], module.rpartition(".")[2]))

    assert shown == imported


def test_the_packages_are_there_without_importing_them_first() -> None:
    command = (
        "import kraq_dspy as kraq; print(kraq.optimize.compile_program, kraq.retrievers, kraq.eval, kraq.finetune)"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert "compile_program" in done.stdout


def test_a_name_that_does_not_exist_is_refused_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'kraq_dspy' has no attribute 'Nonsense'"):
        kraq.Nonsense  # type: ignore[attr-defined]  # noqa: B018


def vars_of(module: str) -> list[str]:
    return [name for name in dir(importlib.import_module(module)) if not name.startswith("_")]


def own_types(annotation: object) -> set[str]:
    """Names of this library's classes in an annotation."""
    if isinstance(annotation, type) and annotation.__module__.startswith("kraq_dspy."):
        return {annotation.__name__}
    return {name for part in typing.get_args(annotation) for name in own_types(part)}


def test_what_a_public_signature_mentions_can_be_imported_from_a_public_module() -> None:
    public = {name for module in MODULES for name in vars_of(module)}
    missing = {}
    for name in kraq.__all__:
        thing = getattr(kraq, name)
        if isinstance(thing, ModuleType) or (isinstance(thing, type) and issubclass(thing, BaseException)):
            continue
        makes = getattr(thing, "open", thing.__init__) if inspect.isclass(thing) else thing
        try:
            hints = typing.get_type_hints(makes)
        except (NameError, TypeError):  # a name that is imported for type checkers alone
            continue
        if unknown := {each for hint in hints.values() for each in own_types(hint)} - public:
            missing[name] = sorted(unknown)
    assert missing == {}


def promised() -> list[str]:
    """The modules whose names docs/stability.md promises to keep."""
    page = (ROOT / "docs" / "stability.md").read_text("utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| names in `__all__`")]
    return re.findall(r"`(kraq_dspy[\w.]*)`", row)


@pytest.mark.parametrize("name", promised())
def test_a_module_that_is_promised_lists_its_names_each_once(name: str) -> None:
    module = importlib.import_module(name)
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    assert [each for each in module.__all__ if not hasattr(module, each)] == []


def blocks_of_pages() -> dict[str, ast.Module]:
    """The Python blocks of README and of the pages, by page and number."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        f"{page.relative_to(ROOT)} {number}": ast.parse(block)
        for page in pages
        for number, block in enumerate(re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text("utf-8")))
    }


def names_in(tree: ast.Module) -> set[tuple[str, str]]:
    """Module and name of what a block takes from the library: `from M import N`, and `kraq.N` or `kraq.M.N`."""
    taken = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kraq_dspy"):
            taken |= {(node.module or "", alias.name) for alias in node.names}
        if isinstance(node, ast.Attribute):
            first, *rest = ast.unparse(node).split(".")
            if first == "kraq" and rest:
                taken.add(("kraq_dspy", rest[0]))
            if first == "kraq" and rest[1:] and isinstance(getattr(kraq, rest[0], None), ModuleType):
                taken.add((f"kraq_dspy.{rest[0]}", rest[1]))
    return taken


def test_what_the_pages_import_is_promised() -> None:
    blocks = blocks_of_pages()
    assert len(blocks) > 40
    missing = {
        page: sorted(f"{module}.{name}" for module, name in names_in(tree) if not is_promised(module, name))
        for page, tree in blocks.items()
    }
    assert {page: names for page, names in missing.items() if names} == {}


def is_promised(module: str, name: str) -> bool:
    return module in promised() and name in importlib.import_module(module).__all__


def test_a_name_that_is_not_promised_would_be_seen() -> None:
    tree = ast.parse("from kraq_dspy.workspace import Workspace\nkraq.ask()\nkraq.programs.Nonsense()\nkraq.Corpus()")
    assert {each for each in names_in(tree) if not is_promised(*each)} == {
        ("kraq_dspy.workspace", "Workspace"),
        ("kraq_dspy", "ask"),
        ("kraq_dspy.programs", "Nonsense"),
    }


def composed_with() -> dict[str, Any]:
    """What README and the first hour compose with, by name: functions, ways to open, programs by name."""
    things = {name: getattr(kraq, name) for name in kraq.__all__ if inspect.isfunction(getattr(kraq, name))}
    things |= {spec.class_name: getattr(kraq.programs, spec.class_name) for spec in PROGRAMS.own.values()}
    things |= {"Workspace.open": kraq.Workspace.open, "Workspace.ask": kraq.Workspace.ask}
    return things | {"Corpus.from_texts": kraq.Corpus.from_texts}


@pytest.mark.parametrize("name", composed_with())
def test_the_docstring_of_what_people_compose_with_names_arguments_result_and_errors(name: str) -> None:
    thing = composed_with()[name]
    text = inspect.getdoc(thing) or ""
    parameters = inspect.signature(thing.__init__ if inspect.isclass(thing) else thing).parameters
    named = [each for each in parameters if each != "self"]

    assert [each for each in named if not re.search(rf"(?m)^    \*{{0,2}}{each}: \S", text)] == []
    hint = inspect.signature(thing).return_annotation if not inspect.isclass(thing) else None
    assert hint in (None, "None") or "\nReturns:\n" in text or not named
    assert "\nRaises:\n" in text or name in ("bundled_example", "show", "Workspace.ask")


def test_help_begins_with_the_page_about_the_library() -> None:
    text = pydoc.plain(pydoc.render_doc(kraq))
    beginning = text[:3000]
    assert "kraq.build_index" in beginning
    assert "CombinedRetrieveRAG" in beginning


def test_the_top_has_what_the_first_hour_needs_and_no_more() -> None:
    assert len(dir(kraq)) <= 30


@pytest.mark.parametrize(
    "module", ["programs", "retrievers", "signatures", "eval", "optimize", "finetune", "extend", "apps", "indexing"]
)
def test_a_public_module_shows_its_names_and_nothing_else(module: str) -> None:
    loaded = importlib.import_module(f"kraq_dspy.{module}")
    assert dir(loaded) == sorted(loaded.__all__)
    assert not [name for name in dir(loaded) if isinstance(getattr(loaded, name), ModuleType)]


@pytest.mark.parametrize("module", ["errors", "settings", "testing"])
def test_a_public_file_lists_all_that_it_promises(module: str) -> None:
    loaded = importlib.import_module(f"kraq_dspy.{module}")
    own = {
        name
        for name, value in vars(loaded).items()
        if inspect.isclass(value) and value.__module__ == loaded.__name__ and not name.startswith("_")
    }
    assert own <= set(loaded.__all__)
    assert len(set(loaded.__all__)) == len(loaded.__all__)
    assert [name for name in loaded.__all__ if getattr(getattr(loaded, name), "__doc__", None) is None] == []


def test_the_page_of_promises_names_each_public_module() -> None:
    page = (ROOT / "docs" / "stability.md").read_text("utf-8")
    named = set(re.findall(r"`(kraq_dspy(?:\.\w+)?)`", page))
    documented = set(re.findall(r"(?m)^\| \[`(kraq_dspy[\w.]*)`", (ROOT / "docs/reference/api.md").read_text("utf-8")))
    assert {*MODULES, "kraq_dspy.testing", "kraq_dspy.apps"} | documented <= named


def test_what_people_try_first_is_there() -> None:
    from kraq_dspy.eval import exact_match, recall_at_k
    from kraq_dspy.programs import KRAQ, AskQuestion, CombinedRetrieveRAG, DescribeCommunity, ExtractGraph
    from kraq_dspy.retrievers import AdaptiveRetriever
    from kraq_dspy.signatures import AnswerQuestion

    assert all((exact_match, recall_at_k, KRAQ, AskQuestion, CombinedRetrieveRAG, DescribeCommunity, ExtractGraph))
    assert all((AdaptiveRetriever, AnswerQuestion))


def test_no_document_imports_from_deeper_than_one_name() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.ipynb"))]
    deep = re.compile(r"(?:from|import) (kraq_dspy\.\w+\.\w[\w.]*)")
    found = {
        page.relative_to(ROOT).as_posix(): names
        for page in pages
        if (names := sorted(set(deep.findall(page.read_text("utf-8")))))
    }
    assert found == {}
