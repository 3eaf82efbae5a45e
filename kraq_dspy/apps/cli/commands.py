"""Lists the commands: in which group of help each stands, and under which name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from kraq_dspy.apps.cli.ask.serving import explore, serve
from kraq_dspy.apps.cli.maintain.change import add, check, remove, resume, update
from kraq_dspy.apps.cli.maintain.exchange import export, graphrag, triples
from kraq_dspy.apps.cli.prepare.catalogue import add as catalogue_add
from kraq_dspy.apps.cli.prepare.catalogue import approve, import_, list_, seed, show, synthesize
from kraq_dspy.apps.cli.prepare.catalogue import export as catalogue_export
from kraq_dspy.apps.cli.prepare.catalogue import remove as catalogue_remove
from kraq_dspy.apps.cli.prepare.precompute import calibrate, precompute
from kraq_dspy.apps.cli.prepare.review import review
from kraq_dspy.apps.cli.research.data import fetch
from kraq_dspy.apps.cli.research.data import list_ as list_data
from kraq_dspy.apps.cli.research.eval.asked import asked
from kraq_dspy.apps.cli.research.eval.index import index as eval_index
from kraq_dspy.apps.cli.research.eval.judges import judges
from kraq_dspy.apps.cli.research.eval.list import list_ as list_tables
from kraq_dspy.apps.cli.research.eval.table import TABLES, table
from kraq_dspy.apps.cli.research.lm import check as lm_check
from kraq_dspy.apps.cli.research.lm import get, load, unload
from kraq_dspy.apps.cli.research.lm import serve as lm_serve
from kraq_dspy.apps.cli.research.optimize import optimize
from kraq_dspy.apps.cli.research.report import report
from kraq_dspy.apps.cli.research.train import drafter, generator, pairs
from kraq_dspy.apps.cli.shared.flat import flat
from kraq_dspy.apps.cli.start.demo import demo
from kraq_dspy.apps.cli.start.index import estimate, index, questions
from kraq_dspy.apps.cli.start.status import status
from kraq_dspy.errors import did_you_mean
from kraq_dspy.eval.papers.catalogue import papers_tables

Command = Callable[..., Any]


class TableGroup(TyperGroup):
    """`kraq eval docs.kraq questions.csv` is `kraq eval index docs.kraq questions.csv`; `kraq eval kraq-2` and
    `kraq eval my.toml` are `kraq eval table kraq-2` and `kraq eval table my.toml`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer's click is a package of its own
        if args and (args[0] in TABLES or args[0].endswith(".toml") or args[0] in papers_tables()):
            args = ["table", *args]
        elif args and args[0] not in self.commands and (args[0].endswith(".kraq") or Path(args[0]).is_dir()):
            args = ["index", *args]
        if args and args[0] not in self.commands:
            near = did_you_mean(args[0], [*self.commands, *TABLES, *papers_tables()])
            ctx.fail(
                f"There is no command, table or index {args[0]!r}{near}. `kraq eval list` has all tables of the papers."
            )
        return super().resolve_command(ctx, args)


@dataclass(frozen=True)
class ProgramCommand:
    """A command with the options of all programs, which take a second to import: only itself needs them, and the list
    of commands needs no more than its name and its first line."""

    name: str
    help: str
    module: str

    def load(self) -> Command:
        command: Command = getattr(import_module(self.module), self.name)
        return command


@dataclass(frozen=True)
class Group:
    """Commands of two words, such as `kraq catalogue add`."""

    name: str
    help: str
    commands: Sequence[Command]
    cls: type[TyperGroup] = TyperGroup


EVAL = f"""Measure, with intervals and paired tests. Interrupted? The same command goes on.

kraq eval INDEX QUESTIONS: ask an index, as it is, the questions of a csv, jsonl or parquet file.

kraq eval asked INDEX QUESTIONS: what of a log of real questions the index anticipates, and what it cannot answer.

kraq eval list: every table and figure of the five papers, what it needs, and whether it was run. kraq eval kraq-2, or
another id of that list, runs it; --paper takes the paper's own settings.

kraq eval COMPARISON: {", ".join(TABLES)}.

kraq eval judges: how far a judge agrees with labels.

kraq eval TABLE.toml: a table of your own, written like those in kraq_dspy/eval/tables/definitions.
"""

CATALOGUE = (
    catalogue_add, list_, show, approve, catalogue_remove, import_, catalogue_export, review, seed,
    synthesize,
)  # fmt: skip

ASK = ProgramCommand("ask", "Answer QUESTION from the index, and show what it rests on.", "kraq_dspy.apps.cli.ask.ask")
CHAT = ProgramCommand(
    "chat", "Ask one question after another, without waiting for models to load again.", "kraq_dspy.apps.cli.ask.chat"
)
MCP = ProgramCommand("mcp", "Offer the index to agents by the Model Context Protocol.", "kraq_dspy.apps.cli.ask.mcp")

COMMANDS: dict[str, Sequence[Command | ProgramCommand | Group]] = {
    "Start": (demo, index, estimate, status, questions),
    "Ask": (ASK, CHAT, explore, serve, MCP),
    "Maintain": (
        add, remove, update, resume, check, export,
        Group("import", "Make an index from another system's graph.", (graphrag, triples)),
    ),
    "Prepare": (
        precompute, calibrate,
        Group("catalogue", "Answers prepared in advance, which `kraq ask -p qa-search` gives.", CATALOGUE),
    ),
    "Research": (
        Group("eval", EVAL, (eval_index, asked, list_tables, table, judges), TableGroup), report,
        Group("data", "The public data sets of the tables.", (list_data, fetch)), optimize, pairs,
        Group("finetune", "Train a small model for a step (LoRA).", (generator, drafter)),
        Group("lm", "Bring or check a model; serve those of kraq.toml.", (get, lm_check, lm_serve, load, unload)),
    ),
}  # fmt: skip


def add_commands(app: typer.Typer, words: Sequence[str] | None = None) -> None:
    """All commands; of those with the options of programs, only the ones that `words`, a command line, names."""
    for panel, commands in COMMANDS.items():
        for command in commands:
            if isinstance(command, Group):
                group = typer.Typer(cls=command.cls, no_args_is_help=True, help=command.help)
                for member in command.commands:
                    group.command(name_of(member))(flat(member))
                app.add_typer(group, name=command.name, rich_help_panel=panel)
            elif isinstance(command, ProgramCommand):
                is_wanted = words is None or command.name in words
                add = app.command(command.name, rich_help_panel=panel, help=None if is_wanted else command.help)
                add(flat(command.load()) if is_wanted else _not_loaded)
            else:
                app.command(name_of(command), rich_help_panel=panel)(flat(command))


def _not_loaded() -> None:
    """Stands in a list of commands."""


def name_of(command: Command) -> str:
    """The function's name; an underscore at its end keeps it apart from a word of Python."""
    return command.__name__.rstrip("_")
