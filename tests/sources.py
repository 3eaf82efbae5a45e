"""The package's own sources, parsed once for all tests that read them: their imports, calls and constants."""

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "kraq_dspy"


@dataclass(frozen=True)
class Import:
    """`from module import names`, or `import module` without names."""

    file: str  # below the package, with slashes
    line: int
    module: str
    names: tuple[str, ...] = ()
    in_function: bool = False
    for_types: bool = False  # under TYPE_CHECKING


@dataclass(frozen=True)
class Call:
    """A call of something that has a name: "torch.load"."""

    file: str
    line: int
    name: str
    arguments: tuple[ast.expr, ...]
    keywords: dict[str, ast.expr]


@dataclass(frozen=True)
class Sources:
    """What the tests look for in the files of the package, in the order of the files."""

    imports: list[Import] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    constants: list[tuple[str, str, ast.expr]] = field(default_factory=list)  # file, name, value: `_NEEDED = "train"`


@cache
def sources(pattern: str = "**/*.py") -> Sources:
    """What stands in the files of the package that match."""
    found = Sources()
    for path in sorted(PACKAGE.glob(pattern)):
        file = path.relative_to(PACKAGE).as_posix()
        for node, in_function, for_types in _nodes_of(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = tuple(alias.name for alias in node.names)
                module = "." * node.level + (node.module or "")
                found.imports.append(Import(file, node.lineno, module, names, in_function, for_types))
            elif isinstance(node, ast.Import):
                found.imports.extend(
                    Import(file, node.lineno, alias.name, (), in_function, for_types) for alias in node.names
                )
            _look_at(node, file, found)
    return found


_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


def _nodes_of(tree: ast.Module) -> Iterator[tuple[ast.AST, bool, bool]]:
    """The nodes of a file, breadth first and without leaves: each, whether it is in a function, and whether for types
    alone."""
    waiting: deque[tuple[ast.AST, bool, bool]] = deque([(tree, False, False)])
    while waiting:
        node, in_function, for_types = waiting.popleft()
        yield node, in_function, for_types
        in_function |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for_types |= isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        waiting.extend(
            (child, in_function, for_types) for child in ast.iter_child_nodes(node) if not isinstance(child, _LEAVES)
        )


def _look_at(node: ast.AST, file: str, found: Sources) -> None:
    if isinstance(node, ast.Call):
        keywords = {word.arg: word.value for word in node.keywords if word.arg}
        found.calls.append(Call(file, node.lineno, _dotted(node.func), tuple(node.args), keywords))
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        found.constants.append((file, node.targets[0].id, node.value))


def _dotted(node: ast.expr) -> str:
    """The name that is called; "" where it is no name, as in `table[key]()`, but the last part, as in `.read`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""
