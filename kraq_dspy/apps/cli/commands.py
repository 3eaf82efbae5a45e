"""Lists the commands: in which group of help each stands, and under which name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperGroup

from kraq_dspy.apps.cli.ask.ask import ask
from kraq_dspy.apps.cli.ask.chat import chat
from kraq_dspy.apps.cli.ask.mcp import mcp
from kraq_dspy.apps.cli.ask.serving import explore, serve
from kraq_dspy.apps.cli.maintain.add import add
from kraq_dspy.apps.cli.maintain.check import check
from kraq_dspy.apps.cli.maintain.export import export
from kraq_dspy.apps.cli.maintain.import_graph import graphrag, triples
from kraq_dspy.apps.cli.maintain.remove import remove
from kraq_dspy.apps.cli.maintain.resume import resume
from kraq_dspy.apps.cli.maintain.update import update
from kraq_dspy.apps.cli.prepare.calibrate import calibrate
from kraq_dspy.apps.cli.prepare.catalogue import add as catalogue_add
from kraq_dspy.apps.cli.prepare.catalogue import remove as catalogue_remove
from kraq_dspy.apps.cli.prepare.catalogue.approve import approve
from kraq_dspy.apps.cli.prepare.catalogue.export_file import export as catalogue_export
from kraq_dspy.apps.cli.prepare.catalogue.import_file import import_
from kraq_dspy.apps.cli.prepare.catalogue.list import list_
from kraq_dspy.apps.cli.prepare.catalogue.review import review
from kraq_dspy.apps.cli.prepare.catalogue.seed import seed
from kraq_dspy.apps.cli.prepare.catalogue.show import show
from kraq_dspy.apps.cli.prepare.catalogue.synthesize import synthesize
from kraq_dspy.apps.cli.prepare.precompute import precompute
from kraq_dspy.apps.cli.research.data import fetch
from kraq_dspy.apps.cli.research.data import list_ as list_data
from kraq_dspy.apps.cli.research.eval.judges import judges
from kraq_dspy.apps.cli.research.eval.list import list_ as list_tables
from kraq_dspy.apps.cli.research.eval.table import TABLES, table
from kraq_dspy.apps.cli.research.finetune import drafter, generator
from kraq_dspy.apps.cli.research.lm import load, unload
from kraq_dspy.apps.cli.research.lm import serve as lm_serve
from kraq_dspy.apps.cli.research.lm_check import check as lm_check
from kraq_dspy.apps.cli.research.lm_get import get
from kraq_dspy.apps.cli.research.optimize import optimize
from kraq_dspy.apps.cli.research.pairs import pairs
from kraq_dspy.apps.cli.research.report import report
from kraq_dspy.apps.cli.shared.flat import flat
from kraq_dspy.apps.cli.start.demo import demo
from kraq_dspy.apps.cli.start.estimate import estimate
from kraq_dspy.apps.cli.start.index import index
from kraq_dspy.apps.cli.start.questions import questions
from kraq_dspy.apps.cli.start.status import status
from kraq_dspy.errors import did_you_mean
from kraq_dspy.eval.papers.catalogue import papers_tables

Command = Callable[..., Any]


class TableGroup(TyperGroup):
    """`kraq eval kraq-2` and `kraq eval my.toml` are `kraq eval table kraq-2` and `kraq eval table my.toml`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer's click is a package of its own
        if args and (args[0] in TABLES or args[0].endswith(".toml") or args[0] in papers_tables()):
            args = ["table", *args]
        if args and args[0] not in self.commands:
            near = did_you_mean(args[0], [*self.commands, *TABLES, *papers_tables()])
            ctx.fail(f"There is no command or table {args[0]!r}{near}. `kraq eval list` has every table of the papers.")
        return super().resolve_command(ctx, args)


@dataclass(frozen=True)
class Group:
    """Commands of two words, such as `kraq catalogue add`."""

    name: str
    help: str
    commands: Sequence[Command]
    cls: type[TyperGroup] = TyperGroup


EVAL = f"""Measure, with intervals and paired tests. Interrupted? The same command goes on.

kraq eval list: every table and figure of the five papers, what it needs, and whether it was run. kraq eval kraq-2, or
another id of that list, runs it; --paper takes the paper's own settings.

kraq eval COMPARISON: {", ".join(TABLES)}.

kraq eval judges: how far a judge agrees with labels.

kraq eval TABLE.toml: a table of your own, written like those in kraq_dspy/eval/tables/definitions.
"""

CATALOGUE = (
    catalogue_add.add, list_, show, approve, catalogue_remove.remove, import_, catalogue_export, review, seed,
    synthesize,
)  # fmt: skip

COMMANDS: dict[str, Sequence[Command | Group]] = {
    "Start": (demo, index, estimate, status, questions),
    "Ask": (ask, chat, explore, serve, mcp),
    "Maintain": (
        add, remove, update, resume, check, export,
        Group("import", "Make an index from another system's graph.", (graphrag, triples)),
    ),
    "Prepare": (
        precompute, calibrate,
        Group("catalogue", "Answers prepared in advance, which `kraq ask -p qa-search` gives.", CATALOGUE),
    ),
    "Research": (
        Group("eval", EVAL, (list_tables, table, judges), TableGroup), report,
        Group("data", "The public data sets of the tables.", (list_data, fetch)), optimize, pairs,
        Group("finetune", "Train a small model for a step (LoRA).", (generator, drafter)),
        Group("lm", "Bring or check a model; serve those of kraq.toml.", (get, lm_check, lm_serve, load, unload)),
    ),
}  # fmt: skip


def add_commands(app: typer.Typer) -> None:
    for panel, commands in COMMANDS.items():
        for command in commands:
            if isinstance(command, Group):
                group = typer.Typer(cls=command.cls, no_args_is_help=True, help=command.help)
                for member in command.commands:
                    group.command(name_of(member))(flat(member))
                app.add_typer(group, name=command.name, rich_help_panel=panel)
            else:
                app.command(name_of(command), rich_help_panel=panel)(flat(command))


def name_of(command: Command) -> str:
    """The function's name; an underscore at its end keeps it apart from a word of Python."""
    return command.__name__.rstrip("_")
