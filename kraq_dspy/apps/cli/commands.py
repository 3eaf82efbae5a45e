"""Lists the commands: in which group of help each stands, and under which name."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from kraq_dspy.apps.cli import faq
from kraq_dspy.apps.cli.ask import Ask
from kraq_dspy.apps.cli.audits import Bias, Diversity, RatersSheet, Stores
from kraq_dspy.apps.cli.change import Check, Remove, Update
from kraq_dspy.apps.cli.demo import Demo
from kraq_dspy.apps.cli.evaluate import EvalIndex, FetchData, ListData, Report
from kraq_dspy.apps.cli.exchange import Export, ImportGraphRAG
from kraq_dspy.apps.cli.index import BuildIndex, ListQuestions
from kraq_dspy.apps.cli.label import LabelQuestions
from kraq_dspy.apps.cli.lm import GetModel, ServeModel
from kraq_dspy.apps.cli.mcp import Mcp
from kraq_dspy.apps.cli.optimize import Optimize
from kraq_dspy.apps.cli.precompute import Precompute
from kraq_dspy.apps.cli.recorded import EvalRecorded
from kraq_dspy.apps.cli.select import Select
from kraq_dspy.apps.cli.serving import Serve
from kraq_dspy.apps.cli.status import Status
from kraq_dspy.apps.cli.tables import TABLES, ListTables, RunTable
from kraq_dspy.apps.cli.testset import CoverTestset, MakeTestset, UpdateTestset, WriteQrels
from kraq_dspy.apps.cli.train import Asker, Drafter, Generator, MakePairs
from kraq_dspy.errors import did_you_mean


class Command(Protocol):
    """A dataclass; its fields are the options and its docstring is the help."""

    def run(self) -> None: ...


class EvalGroup(TyperGroup):
    """`kraq eval docs.kraq questions.csv` asks an index, and `kraq eval answers.csv` scores recorded answers."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer's click is a package of its own
        from kraq_dspy.eval.questions import FORMATS  # with DSPy, for which help need not wait

        is_placeholder = args[:1] in ([INDEX], [RECORDED]) and not Path(args[0]).exists()  # of the page of help
        if not args or is_placeholder or args[0] in {*self.commands} - {INDEX, RECORDED}:
            return super().resolve_command(ctx, args)

        first = args[0]
        if first.endswith(".kraq") or Path(first).is_dir():
            return super().resolve_command(ctx, [INDEX, *args])
        if Path(first).is_file() or first.lower().endswith(FORMATS):
            return super().resolve_command(ctx, [RECORDED, *args])
        return ctx.fail(
            f"There is no index or file {first!r}{did_you_mean(first, self.commands)}. Tables: kraq bench list"
        )


class BenchGroup(TyperGroup):
    """`kraq bench kraq-2` and `kraq bench my.toml` run tables."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        from kraq_dspy.papers.catalogue import papers_tables

        if not args or args[0] in self.commands:
            return super().resolve_command(ctx, args)

        first = args[0]
        if first in TABLES or first.endswith(".toml") or first in papers_tables():
            return super().resolve_command(ctx, [TABLE, *args])
        near = did_you_mean(first, [*self.commands, *TABLES, *papers_tables()])
        return ctx.fail(f"There is no table {first!r}{near}. `kraq bench list` has all tables of the papers.")


INDEX, RECORDED, TABLE = "INDEX", "FILE", "TABLE"
"""What a command is given in place of a second word."""


@dataclass(frozen=True)
class Group:
    """Commands of two words, such as `kraq faq add`."""

    help: str
    commands: Mapping[str, type[Command]]
    cls: type[TyperGroup] = TyperGroup


EVAL = """Measure an index, or answers that were given already, with intervals and paired tests.

The same command resumes an interrupted run.
"""

BENCH = f"""Run the tables and figures of the five papers, and tables of your own.

kraq bench list: what each needs, and whether it was run. kraq bench kraq-2, or another id of that list, runs it.
--paper takes the paper's own settings. kraq bench COMPARISON: {", ".join(TABLES)}.

kraq bench TABLE.toml: a table written like those in kraq_dspy/papers/tables/definitions.
"""

FAQ = {
    "add": faq.AddEntries,
    "list": faq.ListEntries,
    "approve": faq.ApproveEntries,
    "remove": faq.RemoveEntries,
    "seed": faq.Seed,
}

BENCHMARKS = {
    "list": ListTables,
    TABLE: RunTable,
    "data": ListData,
    "fetch": FetchData,
    "diversity": Diversity,
    "bias": Bias,
    "stores": Stores,
    "qa-rag-1": RatersSheet,
}

TRAINING = {"pairs": MakePairs, "generator": Generator, "asker": Asker, "drafter": Drafter}

COMMANDS: dict[str, Mapping[str, type[Command] | Group]] = {
    "Start": {"demo": Demo, "index": BuildIndex, "status": Status, "questions": ListQuestions},
    "Ask": {"ask": Ask, "serve": Serve, "mcp": Mcp},
    "Maintain": {
        "update": Update,
        "remove": Remove,
        "check": Check,
        "export": Export,
        "import": Group("Make an index of another system's graph.", {"graphrag": ImportGraphRAG}),
    },
    "Prepare": {
        "precompute": Precompute,
        "faq": Group("Answers prepared in advance, which `kraq ask -p qa-search` gives.", FAQ),
    },
    "Research": {
        "eval": Group(EVAL, {INDEX: EvalIndex, RECORDED: EvalRecorded, "report": Report}, EvalGroup),
        "select": Select,
        "testset": Group(
            "Questions with their answers and evidence, made from an index or labeled by you, to measure systems with.",
            {
                "make": MakeTestset,
                "update": UpdateTestset,
                "coverage": CoverTestset,
                "label": LabelQuestions,
                "qrels": WriteQrels,
            },
        ),
        "bench": Group(BENCH, BENCHMARKS, BenchGroup),
        "optimize": Optimize,
        "finetune": Group("Train a small model for a step (LoRA), on pairs.", TRAINING),
        "lm": Group(
            "Small models that run in this process, and servers of others.", {"get": GetModel, "serve": ServeModel}
        ),
    },
}


class ShortHelp(TyperCommand):
    """A command whose `--help` shows the options that most people use, and whose `--help-all` shows all."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        described: list[Any] = [self, *self.params]
        for each in described:  # brackets are brackets, not styles
            each.help = escape(getattr(each, "help", None) or "")

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters; while `--help` is written, the arguments and SHOWN options: the model, JSON, then the
        command's own in their order, then those that it shares."""
        params: list[Any] = list(super().get_params(ctx))
        if not getattr(ctx, "writes_short_help", False):
            return params
        options = [each for each in params if each.param_type_name == "option"]
        ranked = sorted(options, key=lambda each: (each.name not in MOST_USED, bool(each.rich_help_panel)))
        shown = ranked[:SHOWN]
        return [each for each in params if each in shown or each not in options]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        ctx.writes_short_help = "--help-all" not in sys.argv
        hidden = len(super().get_params(ctx)) - len(self.get_params(ctx))
        self.epilog = f"{hidden} more options: --help-all" if hidden else None
        super().format_help(ctx, formatter)


MOST_USED = ("help", "lm", "json")
SHOWN = 13  # options of a short help: ten, and those that every command has


def add_commands(app: typer.Typer) -> None:
    """Adds all of them. Typer makes one from the command line's words; `run` is left to the result callback."""
    names = {"help_option_names": ["-h", "--help", "--help-all"]}
    for panel, commands in COMMANDS.items():
        for name, command in commands.items():
            if isinstance(command, Group):
                group = typer.Typer(cls=command.cls, no_args_is_help=True, help=command.help)
                for word, member in command.commands.items():
                    group.command(word, help=_help(member), cls=ShortHelp, context_settings=names)(member)
                app.add_typer(group, name=name, rich_help_panel=panel)
            else:
                app.command(name, help=_help(command), rich_help_panel=panel, cls=ShortHelp, context_settings=names)(
                    command
                )


def _help(command: type[Command]) -> str:
    """Write the command's paragraphs as lines, which the terminal wraps."""
    return "\n\n".join(" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
