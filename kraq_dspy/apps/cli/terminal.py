"""Prints for the commands: results on standard output, everything else on standard error."""

import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kraq_dspy._internal.display import whole_text
from kraq_dspy.apps.lines import printable as printable, short as short
from kraq_dspy.errors import counted as counted

for _name in ("COLUMNS", "LINES"):  # some shells export 0, in which nothing can be shown
    if not os.environ.get(_name, "0").strip("0"):
        os.environ.pop(_name, None)
output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """`value`, which may hold records, as JSON and nothing else on standard output."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()  # what Windows redirects lacks most letters
    text = whole_text(json.dumps(value, default=_plain, ensure_ascii=not encoding.startswith("utf"), indent=2))
    # what a terminal would obey (0x9b) or turn round (U+202E) stands as its escape
    print("".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "items"):
        return dict(value)
    return str(value)


def say(*parts: Any, style: str = "") -> None:
    """A line on standard output, never read as markup."""
    _print_line(output, Text.assemble(*map(_part, parts), style=style))


def note(*parts: Any, label: str = "note: ") -> None:
    """A line on standard error, never read as markup, behind a yellow label."""
    _print_line(errors, Text.assemble((label, "yellow"), *map(_part, parts)))


def show_error(error: Exception) -> None:
    """Print the message of an error on standard error, without control characters, behind a red label."""
    _print_line(errors, Text.assemble(("Error: ", "red"), printable(str(error))))


def _print_line(console: Console, line: Text) -> None:
    """Print prose folded between words. A line with a command, and what goes into a file or a pipe, has no line break
    that is not in the text, so that the command can be copied: the terminal itself folds it."""
    holds_a_command = "kraq " in line.plain
    console.print(line, soft_wrap=holds_a_command or not console.is_terminal)


def _part(part: Any) -> Any:
    return part if isinstance(part, Text | tuple) else str(part)


def command(*words: Any) -> str:
    """A command line to copy: `kraq` and the words, quoted where a shell wants it."""
    return shlex.join(["kraq", *map(str, words)])


def two_columns(title: str, rows: Mapping[str, Any]) -> Table:
    """Names and values. Numbers are grouped by thousands; nothing is read as markup."""
    table = Table(title=Text(title), title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.min_width = min(len(title), output.width)  # a title is not wrapped at the width of its rows
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), _cell(value))
    return table


def show_counts(title: Any, report: Any, *hidden: str, **more: Any) -> None:
    """The fields of a report under their names: of a list how many, of a mapping its entries."""
    if not isinstance(report, Mapping):
        report = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}

    rows: dict[str, Any] = {}
    for field, value in report.items():
        name = field.replace("_", " ")
        if field in hidden:
            continue
        if isinstance(value, Mapping):
            rows |= {f"{name}, {key.replace('_', ' ')}": count for key, count in value.items()}
        else:
            rows[name] = len(value) if isinstance(value, tuple | list) else value
    output.print(two_columns(str(title), rows | more))


def grid(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[str] = (), **options: Any
) -> Table:
    """A table whose columns of the headings `right` are aligned there. No markup in cells."""
    table = Table(title=Text(title) if title else None, title_justify="left", **options)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    for row in rows:
        table.add_row(*map(_cell, row))
    table.min_width = min(len(title), output.width)
    return table


def _cell(value: Any) -> Text:
    if isinstance(value, Text):
        return value
    return Text(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))


def compact(number: int) -> str:
    """1234567 as "1.2M"."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)
