"""Writes docs/reference/commands.md from the commands themselves: `python scripts/commands_reference.py`."""

import inspect
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


def reference() -> str:
    """The page: groups, commands and options in the order of help."""
    root: Any = get_command(make_app())
    context = typer.Context(root, info_name="kraq")
    parts = [HEAD, _overview(root), "## Options of every command", _table(root.params, context)]
    for panel, commands in COMMANDS.items():
        parts.append(f"## {panel}")
        for name in commands:
            parts.extend(_sections(root.commands[name], f"kraq {name}"))
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


def _sections(command: Any, words: str) -> Iterator[str]:
    context = typer.Context(command, info_name=words)
    if hasattr(command, "commands"):
        yield f"### `{words}`\n\n{_text(command.help)}"
        for name, member in command.commands.items():
            yield from _sections(member, f"{words} {name}")
        return
    arguments = " ".join(
        _argument(parameter) for parameter in command.params if parameter.param_type_name == "argument"
    )
    yield f"### `{f'{words} {arguments}'.strip()}`\n\n{_text(command.help)}\n\n{_table(command.params, context)}"


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _text(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("\\[", "[")


def _table(parameters: Any, context: Any) -> str:
    rows = ["| option | meaning | default |", "|---|---|---|"]
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
    return "\n".join(rows)


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(reference(), "utf-8")
    print(FILE)
