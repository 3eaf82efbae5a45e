"""Prints six walks, from traces of six commands over a small index, as Markdown.

    python scripts/walks.py

A walk names the files in the order in which they are entered, the functions that lead on from each to another file,
and why the file is on the way: the first sentence of its own docstring. Left out is where no way goes on: what a file
is asked for and answers by itself, the plumbing of `_internal`, and the records and ports that everything shares.
"""

import ast
import contextlib
import importlib
import inspect
import json
import os
import pkgutil
import re
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from kraq_dspy.errors import KraqError

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "kraq_dspy"
EXAMPLE = ROOT / "examples" / "hotpotqa-mini"

SHOWN = 3
"""Functions of a file that a walk names."""


@dataclass
class Trace:
    """The package's functions in the order in which they were first called, and which files each led to."""

    functions: dict[tuple[str, str], None] = field(default_factory=dict)
    led_to: defaultdict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))

    def of(self, work: Callable[[], object]) -> "Trace":
        """Listen while `work` runs, in all threads."""
        threading.setprofile(self._hear)
        sys.setprofile(self._hear)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self

    def _hear(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or not _is_step(frame.f_code):
            return
        here = _place(frame.f_code)
        self.functions.setdefault(here)

        caller = frame.f_back
        while caller is not None and not _is_step(caller.f_code):
            caller = caller.f_back
        if caller is not None and _place(caller.f_code)[0] != here[0]:
            self.led_to[_place(caller.f_code)].add(here[0])

    def steps(self) -> list[tuple[str, list[str]]]:
        """The files on the way, each with the first functions that lead on from it."""
        leading: dict[str, list[str]] = {}
        for file, function in self.functions:
            if self.led_to.get((file, function)):
                leading.setdefault(file, []).append(function)

        steps = []
        for file, functions in leading.items():
            named = [function for function in functions if "__" not in function]
            steps.append((file, (named or functions)[:SHOWN]))
        return steps


def import_all() -> None:
    """Import the whole package, so that no trace hears what runs when a module is loaded."""
    for module in pkgutil.walk_packages([str(PACKAGE)], "kraq_dspy."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError, KraqError):  # of a package that is not installed
                importlib.import_module(module.name)


def _is_step(code: CodeType) -> bool:
    """Whether it is a function or a method of the package with a name of its own (no class body, no lambda), and none
    of the plumbing."""
    if not code.co_filename.startswith(f"{PACKAGE}{os.sep}") or "<" in code.co_qualname:
        return False
    file, _ = _place(code)
    is_plumbing = "/" not in file or file.startswith("_internal/")
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and not is_plumbing


def _place(code: CodeType) -> tuple[str, str]:
    return Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname


def reason(file: str) -> str:
    """The first sentence of the file's docstring."""
    text = ast.get_docstring(ast.parse((PACKAGE / file).read_text("utf-8"))) or ""
    first_paragraph = " ".join(text.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[a-z)`\"][.!?]) (?=[A-Z])", first_paragraph, maxsplit=1)[0]
    return sentence.replace("|", "\\|").rstrip(":")


@dataclass(frozen=True)
class Walk:
    """A command as a person types it, and what runs it in this process, in a folder that all walks share."""

    title: str
    command: str
    run: Callable[[], object]


def command_line(*words: str) -> Callable[[], object]:
    """The program `kraq` with these words. Raises RuntimeError where it fails."""

    def run() -> None:
        from typer.testing import CliRunner

        from kraq_dspy.apps.cli.program import make_app

        done = CliRunner().invoke(make_app(), list(words))
        if done.exit_code:
            raise RuntimeError(f"kraq {' '.join(words)} ended with {done.exit_code}:\n{done.output}{done.exception!r}")

    return run


def serve_one_question() -> None:
    """What `kraq serve` does, with one request of a client in this process in the place of a socket."""
    from starlette.testclient import TestClient

    from kraq_dspy.apps.cli.serving import Serve
    from kraq_dspy.apps.serve.app import make_app
    from kraq_dspy.apps.serve.serve_settings import ServeSettings
    from kraq_dspy.apps.serve.served import served

    folders = [Path("docs.kraq")]
    with (
        served(folders, Serve(index_dirs=folders).opened, edit=False) as indexes,
        TestClient(make_app(indexes, ServeSettings()), base_url="http://127.0.0.1:8377") as client,
    ):
        client.post("/api/ask", json={"question": QUESTION}).raise_for_status()


QUESTION = "Were Scott Derrickson and Ed Wood of the same nationality?"

WALKS = (
    Walk(
        "Index a corpus",
        "kraq index corpus.jsonl --out docs.kraq",
        command_line("index", "corpus.jsonl", "--out", "docs.kraq"),
    ),
    Walk("Ask a question", "kraq ask docs.kraq QUESTION", command_line("ask", "docs.kraq", QUESTION)),
    Walk(
        "Measure with a csv",
        "kraq eval docs.kraq questions.csv",
        command_line("eval", "docs.kraq", "questions.csv"),
    ),
    Walk(
        "Compile a step",
        "kraq optimize answering --dev dev.jsonl --out answering.json",
        command_line("optimize", "answering", "--dev", "dev.jsonl", "--out", "answering.json"),
    ),
    Walk("Serve an index, and answer a request", "kraq serve docs.kraq", serve_one_question),
    Walk(
        "Add a document",
        "kraq update --add docs.kraq more.jsonl",
        command_line("update", "--add", "docs.kraq", "more.jsonl"),
    ),
)


def write_data() -> None:
    """Twelve passages in two files, a csv of three questions and rows to learn from, in the current folder."""
    passages = (EXAMPLE / "corpus.jsonl").read_text("utf-8").splitlines()[:12]
    Path("corpus.jsonl").write_text("\n".join(passages[:-1]) + "\n", "utf-8")
    Path("more.jsonl").write_text(passages[-1] + "\n", "utf-8")

    texts = [json.loads(passage)["text"] for passage in passages]
    questions = [json.loads(line) for line in (EXAMPLE / "questions.jsonl").read_text("utf-8").splitlines()[:12]]
    Path("questions.csv").write_text(
        "question,answer\n" + "".join(f'"{row["question"]}","{row["answers"][0]}"\n' for row in questions[:3]), "utf-8"
    )
    rows: list[dict[str, Any]] = [
        {"question": row["question"], "answers": row["answers"], "passages": texts[:2]} for row in questions
    ]
    Path("dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def table(walk: Walk, steps: list[tuple[str, list[str]]]) -> str:
    rows = ["| file | functions, in order | why it is on the way |", "|---|---|---|"]
    rows += [
        f"| `{file}` | {', '.join(f'`{function}`' for function in functions)} | {reason(file)} |"
        for file, functions in steps
    ]
    return "\n".join([f"## {walk.title}: `{walk.command}`, {len(steps)} files", "", *rows, ""])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_CACHE_HOME"] = folder
        write_data()
        import_all()
        tables = [table(walk, Trace().of(walk.run).steps()) for walk in WALKS]
        os.chdir(ROOT)
    print("\n".join(tables))


if __name__ == "__main__":
    main()
