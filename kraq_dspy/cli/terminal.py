"""What the commands print with: results on standard output, everything else on standard error."""

import dataclasses
import json
import logging
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

logger = logging.getLogger(__name__)

output = Console()
errors = Console(stderr=True)


def print_json(value: Any) -> None:
    """`value`, which may hold records, as JSON and nothing else on standard output."""
    print(json.dumps(value, default=_plain, ensure_ascii=False, indent=2))


def print_line(value: Any) -> None:
    """As `print_json`, on one line, at once: for results that come one after the other."""
    print(json.dumps(value, default=_plain, ensure_ascii=False), flush=True)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "items"):
        return dict(value)
    return str(value)


def short(text: str, length: int) -> Text:
    """One line of at most `length` characters. Never read as markup, and without control characters."""
    line = " ".join(printable(text).split())
    return Text(line if len(line) <= length else line[: length - 1] + "…")


def printable(text: str) -> str:
    """Text of documents and models for the terminal: a control character could move the cursor or change colours."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


def two_columns(title: str, rows: dict[str, Any]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.min_width = len(title)  # a title is not wrapped at the width of its rows
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), value if isinstance(value, Text) else Text(str(value)))
    return table


class Bars:
    """`kraq_dspy.ports.Progress` as bars on standard error: counts, rate, tokens, time left. Silent when piped."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[tokens]}", style="cyan"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=errors,
            disable=quiet or not errors.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._tokens: dict[str, list[int]] = {}

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            errors.print("[yellow]Interrupted.[/] What was done is kept; the same command goes on from there.")

    def start(self, stage: str, total: int | None) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total, rate="", tokens="")
            self._tokens[stage] = [0, 0]
            logger.info("%s begins", stage, extra={"stage": stage, "total": total})

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        if stage not in self._tasks:
            self.start(stage, None)
        tokens = self._tokens[stage]
        tokens[0] += prompt_tokens
        tokens[1] += completion_tokens
        task = self._tasks[stage]
        speed = self._progress.tasks[task].speed
        self._progress.update(
            task,
            advance=done,
            rate=f"{speed:,.0f}/s" if speed and speed >= 1 else (f"{speed:.2f}/s" if speed else ""),
            tokens=f"{compact(tokens[0])} in {compact(tokens[1])} out" if any(tokens) else "",
        )

    def finish(self, stage: str) -> None:
        if stage in self._tasks:
            task = self._tasks[stage]
            done = self._progress.tasks[task].completed
            self._progress.update(task, total=done or 1, completed=done or 1)
            prompt, completion = self._tokens[stage]
            said = {"stage": stage, "done": int(done), "prompt_tokens": prompt, "completion_tokens": completion}
            logger.info("%s is done: %d", stage, done, extra=said)


def compact(number: int) -> str:
    """1234567 as "1.2M"."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)
