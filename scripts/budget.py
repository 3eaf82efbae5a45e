"""Counts what each room of the package holds, and compares it with `budget.toml`: python scripts/budget.py [--lower]

A room is a folder of `kraq_dspy`; the files beside the folders are the room `root`, and the embedded model is a room
wherever its folders stand. Counted are Python's tokens (no comments, no docstrings, no line ends), files, and calls of
`re.compile`. Without an option it prints the table; `--lower` rewrites the ceilings that can be lower.
"""

import argparse
import ast
import io
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "kraq_dspy"
BUDGET = ROOT / "budget.toml"
EMBEDDED = ("embedded", "embedded_model.py", "language")
NOT_COUNTED = frozenset(
    (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER)
)


@dataclass(frozen=True, slots=True)
class Size:
    """What a file, a room or the whole package holds, or may hold."""

    tokens: int = 0
    files: int = 0
    patterns: int = 0  # calls of re.compile

    def __add__(self, other: "Size") -> "Size":
        return Size(self.tokens + other.tokens, self.files + other.files, self.patterns + other.patterns)

    def over(self, ceiling: "Size") -> list[str]:
        """The numbers that are above those of the ceiling, in words."""
        numbers = (
            ("tokens", self.tokens, ceiling.tokens),
            ("files", self.files, ceiling.files),
            ("re.compile", self.patterns, ceiling.patterns),
        )
        return [f"{number:,} {name}, {most:,} allowed" for name, number, most in numbers if number > most]


SLACK = Size(tokens=300, files=1)
"""How far `--lower` leaves a ceiling above what is there: a mended line needs no permission."""


def tokens_of(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a source that count: neither layout nor comments nor docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_COUNTED and not token.string.startswith(('"""', 'r"""')):
            yield token


def size_of(text: str) -> Size:
    strings = [token.string for token in tokens_of(text)]
    patterns = sum(
        strings[number : number + 4] == ["re", ".", "compile", "("]
        for number, string in enumerate(strings)
        if string == "re"
    )
    return Size(len(strings), 1, patterns)


def room_of(file: str) -> str:
    """The room of a file, whose path is relative to the package."""
    if file.partition("/")[0] in EMBEDDED:
        return "embedded"
    return file.partition("/")[0] if "/" in file else "root"


def sources() -> dict[str, str]:
    """The package's files by their paths in it."""
    return {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def measured(files: Mapping[str, str]) -> dict[str, Size]:
    """The rooms of these sources, and their sum as `whole`."""
    rooms: dict[str, Size] = {}
    for file, text in files.items():
        size = size_of(text)
        for name in ("whole", room_of(file)):
            rooms[name] = rooms.get(name, Size()) + size
    return rooms


def read_budget(text: str) -> dict[str, Size]:
    """The ceilings by room.

    Raises TypeError where a room has another key than `thousand_tokens`, `files` and `patterns`.
    """
    rooms = {}
    for name, numbers in tomllib.loads(text).items():
        thousands = numbers.pop("thousand_tokens")
        rooms[name] = Size(tokens=round(1000 * thousands), **numbers)
    return rooms


def lowered(text: str, rooms: Mapping[str, Size]) -> str:
    """The text of `budget.toml` with each number that can be lower lowered; comments and all else stay.

    A room that is gone goes, and one that is new is not written: whoever makes a room writes its ceiling and why.
    """
    lines = []
    room = ""
    for line in text.splitlines():
        if line.startswith("["):
            room = line.strip("[]")
        if room and room not in rooms:
            continue

        key, _, value = line.partition(" = ")
        number = value.partition("#")[0].rstrip()
        size = rooms.get(room, Size()) + SLACK
        counts = {
            "thousand_tokens": -(-size.tokens // 100) / 10,
            "files": size.files,
            "patterns": size.patterns,
        }
        if key in counts and counts[key] < float(number):
            line = line.replace(number, str(counts[key]), 1)
        lines.append(line)
    return "\n".join(lines) + "\n"


def excesses(rooms: Mapping[str, Size], ceilings: Mapping[str, Size]) -> list[str]:
    """A line for each room that holds more than it may, or has no ceiling."""
    lines = [f"{room} has no ceiling in budget.toml" for room in rooms if room not in ceilings]
    for room in rooms.keys() & ceilings.keys():
        lines += [f"{room}: {excess}" for excess in rooms[room].over(ceilings[room])]
    return sorted(lines)


def functions_of(files: Mapping[str, str]) -> Counter[tuple[str, str]]:
    """The tokens of each function and, under "", of what stands outside functions, by file's name and function.

    A file is known by its name and a function by its class, not by the folder: what moves is not an addition.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for file, text in files.items():
        owner = _owners(ast.parse(text))
        for token in tokens_of(text):
            counts[file.rpartition("/")[2], owner.get(token.start[0], "")] += 1
    return counts


def _owners(tree: ast.Module) -> dict[int, str]:
    """The outermost function of each line, with the class that holds it."""
    owners: dict[int, str] = {}

    def walk(nodes: Iterable[ast.stmt], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                walk(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    owners[line] = prefix + node.name

    walk(tree.body, "")
    return owners


def largest_additions(before: Mapping[str, str], now: Mapping[str, str], most: int = 3) -> list[str]:
    """The functions that have grown or come most since `before`, in words."""
    old = functions_of({file: text for file, text in before.items() if now.get(file) != text})
    new = functions_of({file: text for file, text in now.items() if before.get(file) != text})
    grown = new - old
    return [
        f"{file} {function or 'outside functions'}: +{tokens:,} tokens"
        for (file, function), tokens in grown.most_common(most)
    ]


def sources_before() -> dict[str, str]:
    """The package at git's merge base with main; on main itself, at the commit that last changed the budget."""
    for base in ("origin/main", "main"):
        commit = _git("merge-base", "HEAD", base).strip()
        if commit and commit != _git("rev-parse", "HEAD").strip():
            break
    else:
        commit = _git("log", "-1", "--format=%H", "--", "budget.toml").strip()

    if not commit:
        return {}
    names = _git("ls-tree", "-r", "--name-only", commit, "kraq_dspy").splitlines()
    changed = set(_git("diff", "--name-only", commit, "--", "kraq_dspy").splitlines())
    now = sources()
    texts = {}
    for name in names:
        if name.endswith(".py"):
            file = name.removeprefix("kraq_dspy/")
            texts[file] = _git("show", f"{commit}:{name}") if name in changed or file not in now else now[file]
    return texts


def _git(*words: str) -> str:
    """What git prints; nothing where there is no git, no repository or no such commit."""
    try:
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return ""


def report(rooms: Mapping[str, Size], ceilings: Mapping[str, Size]) -> str:
    lines = [f"{'room':12}{'tokens':>10}{'allowed':>10}{'files':>8}{'allowed':>8}{'re.compile':>12}{'allowed':>8}"]
    for room in sorted(rooms, key=lambda name: -rooms[name].tokens):
        size, most = rooms[room], ceilings.get(room, Size())
        lines.append(
            f"{room:12}{size.tokens:>10,}{most.tokens:>10,}{size.files:>8}{most.files:>8}"
            f"{size.patterns:>12}{most.patterns:>8}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lower", action="store_true", help="rewrite the ceilings that can be lower")
    options = parser.parse_args()

    now = sources()
    rooms = measured(now)
    text = BUDGET.read_text("utf-8")
    if options.lower:
        BUDGET.write_text(text := lowered(text, rooms), "utf-8")
    ceilings = read_budget(text)

    print(report(rooms, ceilings))
    over = excesses(rooms, ceilings)
    if over:
        sys.exit("\n".join([*over, "Largest additions:", *largest_additions(sources_before(), now)]))


if __name__ == "__main__":
    main()
