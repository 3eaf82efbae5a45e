"""Writes what help shows, and docs/reference/commands.md, from the commands: `python scripts/commands_reference.py`."""

import inspect
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from kraq_dspy.apps.cli.commands import COMMANDS, HELP, Help, load, with_options
from kraq_dspy.apps.cli.program import make_app

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "reference" / "commands.md"
HELP_FILE = ROOT / "kraq_dspy" / "apps" / "cli" / "help.json"

HEAD = """# Commands

Written by `python scripts/commands_reference.py` from the code. `kraq COMMAND --help-all` says the same; `--help` shows
the ten options that most people use. Every command ends with 0 when it is done, 1 when it failed, 2 for wrong use or
settings, and 130 when it was interrupted. `kraq --install-completion` completes commands, options and names.
"""


BUNDLES = {
    "model options": ("--config", "--trust", "--lm", "--api-base"),
    "columns of a corpus": (
        "--text-column", "--title-column", "--id-column", "--acl-column", "--labels", "--encoding",
    ),
    "columns of questions": ("--question-column", "--answer-column", "--documents-column"),
    "limits": ("--max-calls", "--max-tokens", "--max-cost"),
    "who asks": ("--owner", "--scope"),
    "choice of a program": ("--program", "--retriever", "--k", "-P", "--retriever-option", "--programs"),
    "encoder": ("--encoder", "--encoder-api-base"),
}  # fmt: skip
"""Options that commands share as a whole, by a name for all of them."""

VALUES = {
    "<int range>": "N", "<int>": "N", "<float range>": "X", "<float>": "X",
    "<str>": "TEXT", "<list[str]>": "TEXT ...", "<path>": "PATH",
}  # fmt: skip
"""What stands for a value in place of typer's name of its type."""


def help_of_commands() -> dict[str, Help]:
    """Help of every command, by its place."""
    members = itertools.chain(*(members.values() for members in COMMANDS.values()))
    places = [[each] if isinstance(each, str) else [*each.commands.values()] for each in members]
    return {place: _help(place) for place in sorted(itertools.chain(*places))}


def written(commands: Mapping[str, Help]) -> str:
    """The file of help, with a line for each row."""
    text = json.dumps({place: asdict(each) for place, each in commands.items()}, indent=1, ensure_ascii=False)
    return re.sub(r'\[\s+(".*",)\s+(".*",)\s+(".*")\s+\]', r"[\1 \2 \3]", text) + "\n"


def _help(place: str) -> Help:
    command = with_options(place)
    context = typer.Context(command, info_name=place)
    usage: list[str] = []
    rows = []
    for each in _named_values(command.params):
        if each.param_type_name == "argument":
            usage += each.get_usage_pieces(context)
            rows.append(["Arguments", each.metavar or each.name.upper(), each.help])
        else:
            rows.append([each.rich_help_panel or "Options", *each.get_help_record(context)])
    paragraphs = (load(place).__doc__ or "").split("\n\n")  # whose lines the terminal wraps
    return Help("\n\n".join(" ".join(part.split()) for part in paragraphs), usage, rows)


def _named_values(params: list[Any]) -> list[Any]:
    """The arguments and options, each with a name for its value."""
    for each in params:
        if each.param_type_name == "option":
            each.metavar = each.metavar or VALUES.get(each.display_type(None))
    return params


def reference() -> str:
    """The page: groups, commands and options in the order of help; what many commands share, once before them."""
    root: Any = get_command(make_app())
    context = typer.Context(root, info_name="kraq")
    _load(root)
    names = [name for commands in COMMANDS.values() for name in commands]
    rows_of = {name: _rows_of_leaves(root.commands[name], f"kraq {name}") for name in names}
    shared = _common([list(dict.fromkeys(itertools.chain(*leaves))) for leaves in rows_of.values()], set())
    parts = [
        HEAD, "## Options of every command", "\n".join(_rows(root.params, context)),
        "## What several commands take", *_bundled(shared),
    ]  # fmt: skip
    for panel, commands in COMMANDS.items():
        parts.append(f"## {panel}")
        for name in commands:
            of_group = _common(rows_of[name], set(shared))
            parts.extend(_sections(root.commands[name], f"kraq {name}", set(shared), of_group))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _load(group: Any) -> None:
    """Import the modules of all commands, so that their options are there."""
    for member in group.commands.values():
        if hasattr(member, "commands"):
            _load(member)
        else:
            member.load()
            _named_values(member.params)


def _rows_of_leaves(command: Any, words: str) -> list[list[str]]:
    """The lines of the command, or of each command of a group."""
    if not hasattr(command, "commands"):
        return [_rows(command.params, typer.Context(command, info_name=words))]
    return [rows for name, member in command.commands.items() for rows in _rows_of_leaves(member, f"{words} {name}")]


def _common(lists: Sequence[Sequence[str]], known: set[str]) -> list[str]:
    """The lines that several lists have and nobody knows yet; of those with one name the most frequent."""
    counts = Counter(row for rows in lists for row in rows if row not in known)
    chosen: dict[str, str] = {}
    for row, count in counts.most_common():
        if count > 1:
            chosen.setdefault(_name(row), row)
    return [row for row in counts if row in chosen.values()]


def _bundled(shared: Sequence[str]) -> Iterator[str]:
    """The shared lines, each bundle below its name and the others first."""
    bundled = set(itertools.chain(*BUNDLES.values()))
    yield "\n".join(row for row in shared if _name(row) not in bundled)
    for title, names in BUNDLES.items():
        yield f"{title.capitalize()}:"
        yield "\n".join(row for row in shared if _name(row) in names)


def _names_of(options: Sequence[str]) -> list[str]:
    """The options in backquotes, whole bundles by their names."""
    whole = {title: names for title, names in BUNDLES.items() if set(names) <= set(options)}
    others = [f"`{option}`" for option in options if option not in set(itertools.chain(*whole.values()))]
    return [*whole, *others]


def _name(row: str) -> str:
    return row.partition("`")[2].partition("`")[0]


def _sections(command: Any, words: str, shared: set[str], of_group: Sequence[str] = ()) -> Iterator[str]:
    context = typer.Context(command, info_name=words)
    if hasattr(command, "commands"):
        together = "\n\nIts commands share:\n\n" + "\n".join(of_group) if of_group else ""
        yield f"### `{words}`\n\n{_text(command.help)}{together}"
        for name, member in command.commands.items():
            yield from _sections(member, f"{words} {name}", {*shared, *of_group})
        return
    arguments = " ".join(
        _argument(parameter) for parameter in command.params if parameter.param_type_name == "argument"
    )
    rows = _rows(command.params, context)
    own = [row for row in rows if row not in shared]
    also = _names_of([_name(row) for row in rows if row in shared and _name(row).startswith("-")])
    parts = [f"### `{f'{words} {arguments}'.strip()}`", _text(command.help)]
    parts += ["\n".join(own)] if own else []
    parts += [f"Also: {', '.join(also)}."] if also else []
    yield "\n\n".join(parts)


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _text(text: str | None) -> str:
    return inspect.cleandoc(text or "")


def _rows(parameters: Any, context: Any) -> list[str]:
    """A line for each parameter, a command's own options first."""
    rows = []
    for parameter in sorted(parameters, key=lambda each: bool(each.rich_help_panel)):  # its own options first
        if parameter.name in ("install_completion", "show_completion"):
            continue
        if parameter.param_type_name == "argument":
            names = f"`{_argument(parameter)}`"
        else:
            flags = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
            value = parameter.display_type_rich(context) or ""
            names = f"{flags} {value.strip('<>')}".strip()
        shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
        is_option = parameter.param_type_name == "option"
        needed = " Required." if parameter.required and is_option else ""
        default = "" if shown in (None, False, True, "", ()) or parameter.required else f" Default: `{shown}`."
        rows.append(f"- {names}: {_text(parameter.help)}{needed}{default}")
    return rows


if __name__ == "__main__":
    HELP.update(help_of_commands())  # before the program is made, which takes it
    HELP_FILE.write_text(written(help_of_commands()), "utf-8")
    FILE.write_text(reference(), "utf-8")
    print(HELP_FILE, FILE, sep="\n")
