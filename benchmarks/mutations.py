"""Breaks the core in fifty small ways, one at a time in a copy of the project, and counts how many the tests notice.

    python benchmarks/mutations.py [--seed 0] [--count 50] [--package] [--out build/mutations.jsonl] [--most 5] [--list]
                                   [--again]

The places are drawn by seed, as many from each part of the core: a comparison turned round or moved by one, plus for
minus, `and` for `or`, a condition negated, a number raised by one, a statement left out. Only the tests of that part
run, until the first one fails. With --package, half of the places are drawn from the whole package and half from what
was added last; the tests in the mirrored place and those that import the file run, the nearest first. What was measured
stands in --out, and the same command goes on from there; --again tries those that were not noticed once more.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("kraq_dspy", "tests", "benchmarks", "examples", "scripts", "docs", "pyproject.toml", "README.md", "Makefile")
LONGEST_S = 300.0
"""A part's tests that take longer with a mutation than this hang, and so notice it."""


@dataclass(frozen=True)
class Part:
    """Some files of the package, and the tests that look at them, the nearest first; () for `nearest_tests` a file."""

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]


PARTS = (
    Part("combined's merge", ("retrievers/combined.py",), ("retrievers/test_combined.py", "programs/test_combined.py")),
    Part(
        "adaptive's weights",
        ("retrievers/adaptive.py", "retrievers/pagerank.py"),
        ("retrievers/test_adaptive.py", "retrievers/test_pagerank.py"),
    ),
    Part("words and meaning", ("retrievers/words_and_meaning.py",), ("retrievers/test_words_and_meaning.py",)),
    Part("levels", ("asset/graph/communities.py",), ("asset/graph/test_communities.py",)),
    Part("one name", ("asset/graph/resolve.py",), ("asset/graph/test_resolve.py", "asset/graph/test_names.py")),
    Part(
        "look-up",
        ("asset/store/instructed.py", "indexing/prepare/instructed.py"),
        ("asset/store/test_instructed.py", "indexing/prepare/test_instructed.py"),
    ),
    Part(
        "drafts and subsets",
        ("programs/speculative/subsets.py", "programs/speculative/scoring.py"),
        ("programs/speculative/test_subsets.py", "programs/speculative/test_scoring.py", "programs/speculative"),
    ),
    Part("prepared answers", ("programs/qa_search/program.py",), ("programs/qa_search",)),
    Part("intervals", ("eval/statistics.py",), ("eval/test_statistics.py",)),
    Part(
        "metrics",
        ("eval/metrics/retrieval.py", "eval/metrics/answers.py"),
        ("eval/metrics/test_retrieval.py", "eval/metrics/test_answers.py", "eval/metrics/test_labels.py"),
    ),
    Part("journal", ("asset/store/results.py",), ("asset/store/test_results.py", "steps/test_stored.py")),
    Part(
        "fingerprints",
        ("steps/kept.py",),
        ("steps/test_kept.py", "steps/test_stored.py", "indexing/index/test_build.py"),
    ),
    Part("scope", ("asset/scope.py", "indexing/view/views.py"), ("asset/test_scope.py", "indexing/view", "scope")),
    Part(
        "torn replies",
        ("models/lms/repair.py",),
        ("models/lms/test_repair.py", "models/lms/test_unmarked_replies.py"),
    ),
    Part("chunks", ("asset/corpus/chunk.py",), ("asset/corpus/test_chunk.py", "asset/corpus/test_headings.py")),
    Part(
        "changes",
        ("indexing/index/following.py", "indexing/index/forgetting.py"),
        ("indexing/index/test_following.py", "indexing/index/test_forgotten.py", "indexing/index/test_change.py"),
    ),
    Part(
        "vectors",
        ("asset/store/vectors/local.py",),
        ("asset/store/test_vectors.py", "asset/store/test_points.py", "indexing/view/test_views.py"),
    ),
)  # fmt: skip
ADDED_LAST = (
    "reading", "language/clozes", "programs/kraq/asked_by.py", "programs/kraq/wording.py", "exam", "eval/joint.py",
    "eval/calibration.py", "apps/serve/labels.py", "apps/serve/question_log.py", "steps/journal.py",
    "models/lms/engines/rule_based/reading",
)  # fmt: skip
"""Files and folders of the package that changed most in the days before the last draw."""
MOST_TEST_FILES = 10
"""Of those that look at a file of the package, the nearest."""


def files_of(places: Sequence[str]) -> tuple[str, ...]:
    """The Python files of these files and folders of the package, sorted."""
    package = ROOT / "kraq_dspy"
    paths = [
        path for place in places for path in ([package / place] if place.endswith(".py") else _below(package / place))
    ]
    return tuple(str(path.relative_to(package)) for path in paths)


def _below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def package_parts() -> tuple[Part, ...]:
    """The whole package, and what was added to it last."""
    return Part("package", files_of(["."]), ()), Part("added last", files_of(ADDED_LAST), ())


def nearest_tests(file: str) -> tuple[str, ...]:
    """The files of tests that look at a file of the package, at most `MOST_TEST_FILES`: those in the mirrored place,
    or where tests/where.toml says, then those that import it, from the nearest folder on, small ones first."""
    path = Path(file)
    mirrored = path.parent / f"test_{path.stem.lstrip('_')}.py"
    listed = tomllib.loads((ROOT / "tests" / "where.toml").read_text("utf-8")).get(f"kraq_dspy/{file}")
    first = [str(mirrored)] if (ROOT / "tests" / mirrored).is_file() else []
    first += [str(Path(listed).relative_to("tests"))] if listed else []

    module = ".".join(("kraq_dspy", *path.with_suffix("").parts)).removesuffix(".__init__")
    defined = _defined_in((ROOT / "kraq_dspy" / file).read_text("utf-8"))
    importing = []
    for test, imports in _imports_of_tests():
        is_named = module in imports or any(f"{module}.{name}" in imports for name in defined)
        packages = [".".join(module.split(".")[:depth]) for depth in range(1, module.count(".") + 1)]
        if is_named or any(f"{package}.{name}" in imports for package in packages for name in defined):
            importing.append(test)

    def farness(test: str) -> tuple[int, int, str]:
        shared = len(Path(os.path.commonpath([str(path.parent), str(Path(test).parent)])).parts)
        return -shared, (ROOT / "tests" / test).stat().st_size, test

    beside = list(dict.fromkeys([*first, *sorted(importing, key=farness)]))
    if beside:
        return tuple(beside[:MOST_TEST_FILES])
    nearest = next(folder for folder in path.parents if (ROOT / "tests" / folder).is_dir())
    return (str(nearest),)


def _defined_in(source: str) -> list[str]:
    """The public names of functions, classes and variables of a module."""
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in names if not name.startswith("_")]


@cache
def _imports_of_tests() -> list[tuple[str, frozenset[str]]]:
    """Each file of tests with the dotted names that it imports."""
    imports_by_test = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        names = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
        imports_by_test.append((str(path.relative_to(ROOT / "tests")), frozenset(names)))
    return imports_by_test


@dataclass(frozen=True)
class Mutation:
    """One piece of a file, and what stands in its place; `line` counts from 1, `start` and `end` are bytes."""

    part: str
    file: str
    line: int
    start: int
    end: int
    before: str
    after: str

    @property
    def shown(self) -> str:
        return f"{self.file}:{self.line}: {' '.join(self.before.split())} -> {' '.join(self.after.split())}"

    def applied_to(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Pow: "*",
}
UNSEEN_CALLS = ("logger", "warnings")
"""What these are told changes no result."""


def mutations_of(part: Part, file: str, source: bytes) -> list[Mutation]:
    """Every place of a file that can be broken, in its order; docstrings, annotations and error messages are left."""
    line_starts = [0]
    for line in source.splitlines(keepends=True):
        line_starts.append(line_starts[-1] + len(line))

    def place_of(node: ast.expr | ast.stmt) -> tuple[int, int]:
        start = line_starts[node.lineno - 1] + node.col_offset
        end = line_starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return start, end

    def source_of(node: ast.expr | ast.stmt) -> str:  # ast.get_source_segment cuts the whole file into lines each time
        start, end = place_of(node)
        return source[start:end].decode()

    mutations: list[Mutation] = []
    for node in _executed_nodes(ast.parse(source)):
        after = _broken(node, source_of)
        if after is None:
            continue

        target = node.test if isinstance(node, ast.If | ast.IfExp | ast.While) else node
        assert isinstance(target, ast.expr | ast.stmt)
        start, end = place_of(target)
        mutations.append(Mutation(part.name, file, target.lineno, start, end, source_of(target), after))
    return mutations


def _executed_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes inside functions whose change can be seen in a result."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                yield from _seen_in(statement)


def _seen_in(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Raise | ast.Assert | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.JoinedStr):
        return  # messages, and functions within functions, which are walked themselves
    yield node
    for name, value in ast.iter_fields(node):
        if name == "annotation":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _seen_in(child)


def _broken(node: ast.AST, source_of: Callable[[ast.expr | ast.stmt], str]) -> str | None:
    """What to write in the place of a node (of its test, where it is a condition), or None where it is left."""

    def operand(part: ast.expr) -> str:
        """Its source, in the brackets that it may have stood in."""
        is_plain = isinstance(part, ast.Name | ast.Attribute | ast.Call | ast.Constant | ast.Subscript)
        return source_of(part) if is_plain else f"({source_of(part)})"

    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in COMPARISONS:
            return f"{operand(left)} {COMPARISONS[type(operator)]} {operand(right)}"
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in ARITHMETIC:
            return f"({operand(left)} {ARITHMETIC[type(operator)]} {operand(right)})"
        case ast.BoolOp(op=operator, values=values):
            other = " or " if isinstance(operator, ast.And) else " and "
            return f"({other.join(f'({source_of(value)})' for value in values)})"
        case ast.UnaryOp(op=ast.Not(), operand=negated):
            return f"bool({source_of(negated)})"
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            return None if isinstance(test, ast.Compare | ast.BoolOp) else f"not ({source_of(test)})"
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return repr(number + 1)
        case ast.AugAssign() | ast.Continue() | ast.Break():
            return "pass"
        case ast.Expr(value=ast.Call(func=function)) if not source_of(function).startswith(UNSEEN_CALLS):
            return "pass"
    return None


def drawn(count: int, seed: int, parts: Sequence[Part] = PARTS) -> list[Mutation]:
    """`count` mutations, in turn from each part, so that none is left out."""
    chance = random.Random(seed)
    by_part = []
    for part in parts:
        places = [
            each for file in part.files for each in mutations_of(part, file, (ROOT / "kraq_dspy" / file).read_bytes())
        ]
        chance.shuffle(places)
        by_part.append(places)

    chosen: list[Mutation] = []
    while len(chosen) < count:
        for places in by_part:
            if places and len(chosen) < count:
                chosen.append(places.pop())
    return chosen


class Copy:
    """A copy of the project in which one file at a time is broken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock = time.time()
        for name in COPIED:
            source, target = ROOT / name, folder / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)

    def read(self, file: str) -> bytes:
        return (self.folder / "kraq_dspy" / file).read_bytes()

    def write(self, file: str, content: bytes) -> None:
        path = self.folder / "kraq_dspy" / file
        path.write_bytes(content)
        self._clock += 2  # else Python takes the compiled file of a moment ago for this one's
        os.utime(path, (self._clock, self._clock))

    def first_failure(self, tests: Sequence[str]) -> str:
        """The first test that fails, "hangs" past the time, or "" where all pass."""
        command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow"]
        command += ["--tb=no", "-rfE", *dict.fromkeys(f"tests/{test}" for test in tests)]
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S
            )
        except subprocess.TimeoutExpired:
            return "hangs"
        if done.returncode == 0:
            return ""
        marked = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        if not marked:
            raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return marked[0].split(" - ")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument(
        "--package", action="store_true", help="draw from the whole package, and from what was added last"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutations.jsonl")
    parser.add_argument("--list", action="store_true", help="print the places and run nothing")
    parser.add_argument("--again", action="store_true", help="try once more what was not noticed")
    parser.add_argument("--most", type=int, default=None, help="measure so many now, and leave the rest to another run")
    arguments = parser.parse_args()
    mutations = drawn(arguments.count, arguments.seed, package_parts() if arguments.package else PARTS)
    if arguments.list:
        for mutation in mutations:
            print(f"{mutation.part}: {mutation.shown}")
        return

    noticed_by = _measured_before(arguments.out, with_unnoticed=not arguments.again)
    unmeasured = [mutation for mutation in mutations if mutation.shown not in noticed_by]
    now = unmeasured[: arguments.most]
    if now:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="kraq-mutations-") as folder, arguments.out.open("a") as out:
            for mutation, failure in _measured(now, Copy(Path(folder))):
                noticed_by[mutation.shown] = failure
                out.write(json.dumps({**asdict(mutation), "shown": mutation.shown, "noticed_by": failure}) + "\n")
                out.flush()
                print(f"{failure or 'NOT NOTICED'}: {mutation.shown}", flush=True)

    measured = [mutation for mutation in mutations if mutation.shown in noticed_by]
    unnoticed = [mutation for mutation in measured if not noticed_by[mutation.shown]]
    print(f"{len(measured) - len(unnoticed)} of {len(measured)} noticed, {len(mutations)} drawn, seed {arguments.seed}")
    for mutation in unnoticed:
        print(f"not noticed, {mutation.part}: {mutation.shown}")


def _measured_before(out: Path, *, with_unnoticed: bool) -> dict[str, str]:
    """What noticed each mutation, by `shown`; of several tries the last one."""
    lines = out.read_text().splitlines() if out.exists() else []
    rows = [json.loads(line) for line in lines]
    return {row["shown"]: row["noticed_by"] for row in rows if row["noticed_by"] or with_unnoticed}


def _measured(mutations: Sequence[Mutation], copy: Copy) -> Iterator[tuple[Mutation, str]]:
    tests = {part.name: part.tests for part in PARTS}
    sound: set[str] = set()
    for mutation in mutations:
        source = copy.read(mutation.file)
        copy.write(mutation.file, mutation.applied_to(source))
        failure = copy.first_failure(tests.get(mutation.part) or nearest_tests(mutation.file))
        copy.write(mutation.file, source)

        test = failure.partition(" ")[2].partition("[")[0]
        if test and test not in sound:  # one that fails anyway would notice everything
            if copy.first_failure([test.removeprefix("tests/")]):
                raise SystemExit(f"Without a mutation, {test} fails too.")
            sound.add(test)
        yield mutation, failure


if __name__ == "__main__":
    main()
