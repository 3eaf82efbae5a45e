"""Writes docs/reference/commands.md from the commands themselves: `python scripts/commands_reference.py`."""

import inspect
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from kraq_dspy.apps.cli.commands import COMMANDS
from kraq_dspy.apps.cli.program import make_app

FILE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "commands.md"

HEAD = """# Commands

Written by `python scripts/commands_reference.py` from the code; a test checks that it is up to date. `kraq --help`
and `kraq COMMAND --help-all` say the same; `--help` shows the ten options that most people use. Every command ends
with 0 when it is done, 1 when it failed, 2 for wrong use or settings, and 130 when it was interrupted. `kraq
--install-completion` completes commands, options and names.
"""


SHARED = 4
"""Commands that take an option in the same words; from so many on, the page explains the option once."""
COLUMNS = "| option | meaning | default |\n|---|---|---|"


def reference() -> str:
    """The page: groups, commands and options in the order of help; what many commands share, once before them."""
    root: Any = get_command(make_app())
    context = typer.Context(root, info_name="kraq")
    counts = Counter(
        row
        for commands in COMMANDS.values()
        for name in commands
        for command, words in _leaves(root.commands[name], f"kraq {name}")
        for row in _rows(command.params, typer.Context(command, info_name=words))
    )
    shared = {row for row, count in counts.items() if count >= SHARED and row.startswith("| `-")}
    parts = [
        HEAD, _overview(root), "## Options of every command", "\n".join([COLUMNS, *_rows(root.params, context)]),
        "## Options that several commands take", "\n".join([COLUMNS, *(row for row in counts if row in shared)]),
    ]  # fmt: skip
    for panel, commands in COMMANDS.items():
        parts.append(f"## {panel}")
        for name in commands:
            parts.extend(_sections(root.commands[name], f"kraq {name}", shared))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _overview(root: Any) -> str:
    """Each command with the first sentence of its help, groups in one row with the names of what they hold."""
    rows = ["| command | does |", "|---|---|"]
    for commands in COMMANDS.values():
        for name in commands:
            member = root.commands[name]
            words = " ".join(("kraq", name, "\\|".join(getattr(member, "commands", ())))).strip()
            rows.append(f"| `{words}` | {_text(member.help).splitlines()[0]} |")
    return "\n".join(rows)


def _leaves(command: Any, words: str) -> Iterator[tuple[Any, str]]:
    """The command, or those of a group, each with the words that call it."""
    if not hasattr(command, "commands"):
        yield command, words
        return
    for name, member in command.commands.items():
        yield from _leaves(member, f"{words} {name}")


def _sections(command: Any, words: str, shared: set[str]) -> Iterator[str]:
    context = typer.Context(command, info_name=words)
    if hasattr(command, "commands"):
        yield f"### `{words}`\n\n{_text(command.help)}"
        for name, member in command.commands.items():
            yield from _sections(member, f"{words} {name}", shared)
        return
    arguments = " ".join(
        _argument(parameter) for parameter in command.params if parameter.param_type_name == "argument"
    )
    rows = _rows(command.params, context)
    own = [row for row in rows if row not in shared]
    also = [row.split(" | ")[0].removeprefix("| ").split(", ")[0].split(" ")[0] for row in rows if row in shared]
    parts = [f"### `{f'{words} {arguments}'.strip()}`", _text(command.help)]
    parts += ["\n".join([COLUMNS, *own])] if own else []
    parts += [f"Also: {', '.join(also)}."] if also else []
    yield "\n\n".join(parts)


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _text(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("\\[", "[")


def _rows(parameters: Any, context: Any) -> list[str]:
    """A row of the table for each parameter, a command's own options first."""
    rows = []
    for parameter in sorted(parameters, key=lambda each: bool(each.rich_help_panel)):  # its own options first
        if parameter.name in ("install_completion", "show_completion"):
            continue
        if parameter.param_type_name == "argument":
            names = f"`{_argument(parameter)}`"
        else:
            flags = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
            value = parameter.display_type_rich(context) or ""
            names = f"{flags} {value}".strip()
        shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
        default = "" if shown in (None, False, "", ()) or parameter.required else f"`{shown}`"
        meaning = f"{_text(parameter.help)}{' (required)' if parameter.required else ''}"
        rows.append(f"| {names.replace('|', chr(92) + '|')} | {meaning.replace('|', chr(92) + '|')} | {default} |")
    return rows


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(reference(), "utf-8")
    print(FILE)
