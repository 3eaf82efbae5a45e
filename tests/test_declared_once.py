"""A number that is a default stands in one place: commands and constructors read it from the options or settings."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "kraq_dspy"
DECLARING = ("Options", "Settings")
"""What the names of classes end in that declare options: two of them may agree, each speaks of its own program."""

NOT_THE_SAME = {
    ("concurrency", 8): "questions that `evaluate` asks at once; phrasings that a table asks for at once",
    ("count", 3): "passages that show what an answer rests on; questions to ask next",
    ("k", 10): "what a function of the papers' form gets where it is called without a number",
    ("limit", 10): "failures on a terminal; questions, or neighbours, of a page; failures of a server in a row",
    ("max_tokens", 512): "of a reply; of a passage and its question in one model or another",
}
"""Names and numbers that agree by chance, and what they are about."""


def definitions(node: ast.AST) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The classes and functions in a module, or in a statement, in those also."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from definitions(child)


@pytest.fixture(scope="module")
def trees() -> list[ast.Module]:
    return [ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))]


def defaults_of(tree: ast.Module) -> Iterator[tuple[str, float, str]]:
    """Each number that a field or a parameter has by default: its name, the number, the class or function."""
    for node in definitions(tree):
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    yield from _numbers([(statement.target.id, statement.value)], node.name)
        else:
            arguments = node.args
            positional = [*arguments.posonlyargs, *arguments.args]
            with_default = positional[len(positional) - len(arguments.defaults) :]
            pairs = [*zip(with_default, arguments.defaults, strict=True)]
            named = [*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
            yield from _numbers([(argument.arg, value) for argument, value in (*pairs, *named)], f"{node.name}()")


def _numbers(named: Iterable[tuple[str, ast.expr | None]], owner: str) -> Iterator[tuple[str, float, str]]:
    for name, value in named:
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "option" and value.args:
            value = value.args[0]
        if not isinstance(value, ast.Constant) or isinstance(value.value, bool):
            continue
        if isinstance(value.value, int | float) and value.value not in (0, 1):
            yield name, value.value, owner


def declared_twice(trees: Iterable[ast.Module]) -> dict[tuple[str, float], list[str]]:
    """The classes and functions that have the same number under the same name, by name and number."""
    owners: defaultdict[tuple[str, float], list[str]] = defaultdict(list)
    for tree in trees:
        for name, number, owner in defaults_of(tree):
            owners[name, number].append(owner)
    return {
        default: places
        for default, places in owners.items()
        if len(places) > 1 and not all(place.endswith(DECLARING) for place in places)
    }


def test_a_default_is_declared_once(trees: list[ast.Module]) -> None:
    """If this fails: read the number from where it stands (`k: int = CombinedOptions.k`), or say below why it is not
    the same one."""
    found = declared_twice(trees)

    assert {default: places for default, places in found.items() if default not in NOT_THE_SAME} == {}
    assert NOT_THE_SAME.keys() <= found.keys()  # what agrees no more is no exception


def test_a_command_a_constructor_and_a_setting_with_one_number_are_found() -> None:
    settings = "class ChunkSettings:\n    tokens: Positive = 300\n"
    options = "class WalkOptions:\n    tokens: int = option(300, 'Of a passage.', least=1)\n"
    command = "class Cut:\n    tokens: Annotated[int, typer.Option(min=1)] = 300\n"
    constructor = "class Cutter:\n    def __init__(self, *, tokens: int = 300) -> None: ...\n"
    reading = "class Cutter:\n    def __init__(self, *, tokens: int = ChunkSettings.tokens) -> None: ...\n"

    def found(*sources: str) -> dict[tuple[str, float], list[str]]:
        return declared_twice(map(ast.parse, sources))

    assert found(settings, command) == {("tokens", 300): ["ChunkSettings", "Cut"]}
    assert found(options, constructor) == {("tokens", 300): ["WalkOptions", "__init__()"]}
    assert found(settings, options) == {}
    assert found(settings, reading) == {}


def test_no_default_is_read_from_a_class_that_has_none(trees: list[ast.Module]) -> None:
    """With `slots=True`, `Class.field` is the slot and not the default of the field."""
    every = [node for tree in trees for node in definitions(tree)]
    classes = [node for node in every if isinstance(node, ast.ClassDef)]
    with_slots = {each.name for each in classes if any("slots=True" in ast.unparse(one) for one in each.decorator_list)}
    functions = [node for node in every if isinstance(node, ast.FunctionDef)]
    defaults = [value for each in functions for value in (*each.args.defaults, *each.args.kw_defaults)]
    defaults += [field.value for each in classes for field in each.body if isinstance(field, ast.AnnAssign)]
    read = [ast.unparse(value) for value in defaults if isinstance(value, ast.Attribute)]

    assert "SharingOptions.alpha" in read
    assert [each for each in read if each.partition(".")[0] in with_slots] == []
