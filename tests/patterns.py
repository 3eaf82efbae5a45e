"""Finds the patterns of the package, and writes for each the texts that would take it longest."""

import ast
import contextlib
import importlib
import re
import re._constants as names  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import sys
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import kraq_dspy

PACKAGE = Path(kraq_dspy.__file__).parent
FUNCTIONS = frozenset({"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
FEW = 40
"""Repeats up to which a pattern's part is bounded."""
RUNS = (
    " ", "\n", " \n", "a", "A", "a ", "A ", "Aa ", "A. ", "a, ", ", ", ".", "1", "1 ", "1,",
    "1.", "0", "(", "()", "[", "[[", "]", "{", "<", "<a", "</", ">", '"', "'", "’", "“", "“a", "`", "*", "_", "-", "- ",
    "--", "|", "| ", "#", "/", "\\", "?", "!", ":", "a: ", ";", "&", "=", "the ", "and ", "of the ", "A of ", "Who ",
    "http://", "a@", "漢", "\u0301", "A’s ",
)  # fmt: skip
"""Single characters and short words whose runs are what most patterns repeat."""


def modules() -> Iterator[ModuleType]:
    """Import and yield the modules of the package that use `re`, as far as they can be imported here, and those that
    are loaded with them."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name == "__main__.py" or not re.search(r"^import re$", path.read_text("utf-8"), re.MULTILINE):
            continue
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        with contextlib.suppress(ImportError):
            importlib.import_module(name)

    loaded = [name for name in sys.modules if name.startswith(f"{kraq_dspy.__name__}.")]
    for name in sorted(loaded):
        module = sys.modules[name]
        if getattr(module, "__file__", None):
            yield module


def patterns() -> dict[tuple[str, int, str], str]:
    """Each pattern of the package, (text, flags, "match" or "search"), with the first module that has it.

    A pattern that is only ever matched at a text's beginning is looked at so ("match"); the others are searched for.
    """
    places: dict[tuple[str, int], str] = {}
    functions: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for module in modules():
        nodes = list(ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8"))))
        held = list(_held_by(module))
        named = list(_called_by_name(nodes, module))
        asked_in_loops = _functions_of_loops(nodes, module)
        for pattern in held:
            places.setdefault(_as_text(pattern), module.__name__)
        for pattern in set(held).difference(pattern for _, pattern in named):
            functions[_as_text(pattern)] |= asked_in_loops
        for function, pattern in (*_written_in(nodes, module), *named):
            is_held = _as_text(pattern) in places
            places.setdefault(_as_text(pattern), module.__name__)
            if function != "compile":
                functions[_as_text(pattern)].add(function)
            elif not is_held:  # made in a function
                functions[_as_text(pattern)] |= asked_in_loops or {"search"}

    asked = {}
    for key, place in places.items():
        at_the_beginning = functions[key] and functions[key] <= {"match", "fullmatch"}
        asked[(*key, "match" if at_the_beginning else "search")] = place
    return asked


def _as_text(pattern: re.Pattern[Any]) -> tuple[str, int]:
    """The pattern and its flags. A pattern of bytes is read as one of the characters of the same numbers."""
    if isinstance(pattern.pattern, bytes):
        return pattern.pattern.decode("latin-1"), pattern.flags | re.ASCII
    return pattern.pattern, pattern.flags


def _held_by(module: ModuleType) -> Iterator[re.Pattern[str]]:
    """The compiled patterns in the module's names, in containers and records there too."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            for own in vars(value).values():
                yield from _inside(own, 0)
        else:
            yield from _inside(value, 0)


def _inside(value: Any, depth: int) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth > 4 or isinstance(value, str | bytes | ModuleType):
        return
    elif isinstance(value, Mapping):
        for each in list(value.values()):
            yield from _inside(each, depth + 1)
    elif isinstance(value, tuple | list | set | frozenset):
        for each in value:
            yield from _inside(each, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _inside(getattr(value, each.name, None), depth + 1)
    elif getattr(value, "__self__", None) is not None and isinstance(value.__self__, re.Pattern):
        yield value.__self__  # a method of a pattern: SPACES.sub


def _written_in(nodes: Iterable[ast.AST], module: ModuleType) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The patterns that the module's functions hand to `re`, and to which of its functions. A name that only a call
    knows is taken for "Aa"."""
    for node in nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        function = node.func
        of_re = isinstance(function.value, ast.Name) and function.value.id == "re"
        if not of_re or function.attr not in {*FUNCTIONS, "compile"}:
            continue

        pattern = _evaluated(node.args[0], module)
        if isinstance(pattern, str | bytes):
            yield function.attr, re.compile(pattern, _flags_of(node))  # type: ignore[arg-type]
        elif not isinstance(pattern, re.Pattern):
            raise AssertionError(f"{module.__name__}, line {node.lineno}: what pattern is {ast.unparse(node.args[0])}?")


def _functions_of_loops(nodes: Iterable[ast.AST], module: ModuleType) -> set[str]:
    """How patterns without a name of their own are asked, such as those of a list or of a record:
    `pattern.fullmatch(heading)`, `rules.definition.match(text)`. Texts are split too, so that says nothing."""
    functions = set()
    for node in nodes:
        if not isinstance(node, ast.Attribute) or node.attr not in FUNCTIONS - {"split"}:
            continue
        is_named = isinstance(node.value, ast.Name) and node.value.id in {"re", *vars(module)}
        if isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript) and not is_named:
            functions.add(node.attr)
    return functions


def _called_by_name(nodes: Iterable[ast.AST], module: ModuleType) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The patterns with a name in the module, and how they are asked: NAME.search(...), or NAME.match handed on."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in FUNCTIONS:
            pattern = vars(module).get(node.value.id)
            if isinstance(pattern, re.Pattern):
                yield node.attr, pattern


def _flags_of(call: ast.Call) -> int:
    flags = 0
    for node in (*call.args[1:], *(keyword.value for keyword in call.keywords)):
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "re":
                flag = getattr(re, part.attr, None)
                flags |= int(flag) if isinstance(flag, re.RegexFlag) else 0
    return flags


class Unknown(str):
    """A text that a call alone knows. What it has, and what it gives when it is called, is the same text."""

    __slots__ = ()

    def __getattr__(self, _: str) -> "Unknown":
        return self

    def __call__(self, *_: object) -> "Unknown":
        return self


def _evaluated(node: ast.expr, module: ModuleType) -> Any:
    unknown: defaultdict[str, Any] = defaultdict(lambda: Unknown("Aa"))
    known = {name: value for name, value in vars(module).items() if not callable(value) or name == "re"}
    known |= {"re": re, "map": map, "sorted": sorted, "len": len, "str": str}
    expression = compile(ast.Expression(node), module.__name__, "eval")
    try:
        return eval(expression, {"__builtins__": {}}, ChainMap(known, unknown))  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 (a pattern that only a run can tell)
        return None


def is_bounded(pattern: str, flags: int) -> bool:
    """Whether nothing in the pattern may be there more than a few times: it is tried at a place in few steps."""
    return not any(_has_many(sequence) for sequence in _sequences(parser.parse(pattern, flags)))


def _has_many(items: list[Any]) -> bool:
    repeats = (names.MAX_REPEAT, names.MIN_REPEAT, names.POSSESSIVE_REPEAT)
    return any(operation in repeats and int(argument[1]) > FEW for operation, argument in items)


def worst_units(pattern: str, flags: int) -> list[str]:
    """What a text that takes the pattern long may repeat: runs, what the pattern repeats, and its beginnings."""
    units = list(RUNS)
    try:
        tree = parser.parse(pattern, flags)
    except (re.error, RecursionError):
        return units
    for items in _sequences(tree):
        for end in range(1, len(items) + 1):
            units += [_sample(items[:end], times) for times in (1, 2)]
    return list(dict.fromkeys(unit for unit in units if 0 < len(unit) < 200))


def leads(pattern: str, flags: int) -> list[str]:
    """Beginnings of texts that the pattern begins to match."""
    try:
        items = list(parser.parse(pattern, flags))
    except (re.error, RecursionError):
        return [""]
    return list(dict.fromkeys(["", *(_sample(items[:end], 1) for end in range(1, len(items)))]))


def texts(pattern: str, flags: int, size: int) -> Iterator[str]:
    """Texts of about `size` characters, each a unit over and over, some after a beginning that fits, with an end that
    does not."""
    units = worst_units(pattern, flags)
    for unit in units:
        yield (unit * (size // len(unit) + 1))[:size] + "\x00"
    own = [unit for unit in units if unit not in RUNS]
    for lead in leads(pattern, flags):
        for unit in (*own, " ", "a", "\n", "1") if lead else ():
            yield lead + (unit * (size // len(unit) + 1))[:size] + "\x00"


def _sequences(tree: Any) -> Iterator[list[Any]]:
    """Every sequence of items of a parsed pattern, at any depth."""
    items = list(tree)
    yield items
    for operation, argument in items:
        for inner in _inner(operation, argument):
            yield from _sequences(inner)


def _inner(operation: Any, argument: Any) -> list[Any]:
    if operation in (names.MAX_REPEAT, names.MIN_REPEAT, names.POSSESSIVE_REPEAT):
        return [argument[2]]
    if operation is names.SUBPATTERN:
        return [argument[3]]
    if operation is names.BRANCH:
        return list(argument[1])
    if operation is names.ATOMIC_GROUP:
        return [argument]
    if operation in (names.ASSERT, names.ASSERT_NOT):
        return [argument[1]]
    if operation is names.GROUPREF_EXISTS:
        return [each for each in argument[1:] if each is not None]
    return []


def _sample(items: list[Any], times: int) -> str:
    """A text that the items match, more or less; what may be repeated is there `times` times."""
    parts = []
    for operation, argument in items:
        if operation is names.LITERAL:
            parts.append(chr(argument))
        elif operation is names.NOT_LITERAL:
            parts.append("b" if chr(argument) == "a" else "a")
        elif operation is names.ANY:
            parts.append("a")
        elif operation is names.IN:
            parts.append(_one_of(argument))
        elif operation in (names.MAX_REPEAT, names.MIN_REPEAT, names.POSSESSIVE_REPEAT):
            least, most, body = argument
            parts.append(_sample(list(body), times) * min(max(least, times), int(most)))
        elif operation is names.SUBPATTERN:
            parts.append(_sample(list(argument[3]), times))
        elif operation is names.ATOMIC_GROUP:
            parts.append(_sample(list(argument), times))
        elif operation is names.BRANCH:
            parts.append(_sample(list(argument[1][-1]), times))
    return "".join(parts)


def _one_of(members: list[Any]) -> str:
    """A character of a set; of one that excludes, a common character that is in it."""
    for operation, argument in members:
        if operation is names.LITERAL:
            return chr(argument)
        if operation is names.RANGE:
            return chr(argument[0])
        if operation is names.CATEGORY:
            return {names.CATEGORY_SPACE: " ", names.CATEGORY_DIGIT: "1"}.get(argument, "a")
        if operation is names.NEGATE:
            excluded = {chr(each) for kind, each in members if kind is names.LITERAL}
            return next(letter for letter in "a1 .,bz" if letter not in excluded)
    return "a"
