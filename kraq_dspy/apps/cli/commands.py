"""Lists the commands: in which group of help each stands, and under which name."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import typer
from typer.core import TyperGroup

from kraq_dspy.apps.cli import catalogue
from kraq_dspy.apps.cli.ask import Ask
from kraq_dspy.apps.cli.asked import Asked
from kraq_dspy.apps.cli.audits import Bias, Diversity, RatersSheet, Stores
from kraq_dspy.apps.cli.change import Add, Check, Remove, Resume, Update
from kraq_dspy.apps.cli.chat import Chat
from kraq_dspy.apps.cli.demo import Demo
from kraq_dspy.apps.cli.evaluate import EvalIndex, FetchData, ListData, Report
from kraq_dspy.apps.cli.exchange import Export, ImportGraphRAG
from kraq_dspy.apps.cli.index import BuildIndex, Estimate, ListQuestions
from kraq_dspy.apps.cli.label import LabelQuestions
from kraq_dspy.apps.cli.lm import GetModel, ServeModel
from kraq_dspy.apps.cli.mcp import Mcp
from kraq_dspy.apps.cli.optimize import Domain, Optimize
from kraq_dspy.apps.cli.precompute import Precompute
from kraq_dspy.apps.cli.recorded import EvalRecorded
from kraq_dspy.apps.cli.select import Select
from kraq_dspy.apps.cli.serving import Explore, Serve
from kraq_dspy.apps.cli.status import Status
from kraq_dspy.apps.cli.tables import TABLES, ListTables, RunTable
from kraq_dspy.apps.cli.testset import CoverTestset, MakeTestset, UpdateTestset
from kraq_dspy.apps.cli.train import Asker, Drafter, Generator, MakePairs
from kraq_dspy.errors import did_you_mean


class Command(Protocol):
    """A dataclass; its fields are the options and its docstring is the help."""

    def run(self) -> None: ...


class TableGroup(TyperGroup):
    """`kraq eval docs.kraq questions.csv` is `kraq eval index docs.kraq questions.csv`; `kraq eval kraq-2` and
    `kraq eval my.toml` are `kraq eval table kraq-2` and `kraq eval table my.toml`; `kraq eval answers.csv` is
    `kraq eval recorded answers.csv`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer's click is a package of its own
        from kraq_dspy.eval.questions import FORMATS  # with DSPy, for which help need not wait
        from kraq_dspy.papers.catalogue import papers_tables

        if not args or args[0] in self.commands:
            return super().resolve_command(ctx, args)

        first = args[0]
        if first in TABLES or first.endswith(".toml") or first in papers_tables():
            return super().resolve_command(ctx, ["table", *args])
        if first.endswith(".kraq") or Path(first).is_dir():
            return super().resolve_command(ctx, ["index", *args])
        if Path(first).is_file() or first.lower().endswith(FORMATS):
            return super().resolve_command(ctx, ["recorded", *args])

        near = did_you_mean(first, [*self.commands, *TABLES, *papers_tables()])
        return ctx.fail(
            f"There is no command, table or index {first!r}{near}. `kraq eval list` has all tables of the papers."
        )


@dataclass(frozen=True)
class Group:
    """Commands of two words, such as `kraq catalogue add`."""

    help: str
    commands: Mapping[str, type[Command]]
    cls: type[TyperGroup] = TyperGroup


EVAL = f"""Measure, with intervals and paired tests. The same command resumes an interrupted run.

kraq eval INDEX QUESTIONS: ask an index, as it is, the questions of a csv, jsonl or parquet file.

kraq eval FILE: score answers that were given already (columns response and retrieved_contexts), without a system.

kraq eval asked INDEX QUESTIONS: what of a log of real questions the index anticipates, and what it cannot answer.

kraq eval diversity INDEX QUESTIONS: how diverse the evidence is that retrievers find.

kraq eval bias INDEX: whether the questions follow a theme more than the passages do.

kraq eval list: every table and figure of the five papers, what it needs, and whether it was run. kraq eval kraq-2, or
another id of that list, runs it; --paper takes the paper's own settings.

kraq eval COMPARISON: {", ".join(TABLES)}.

kraq eval TABLE.toml: a table of your own, written like those in kraq_dspy/papers/tables/definitions.
"""

CATALOGUE = {
    "add": catalogue.AddEntry,
    "list": catalogue.ListEntries,
    "approve": catalogue.ApproveEntries,
    "remove": catalogue.RemoveEntries,
    "import": catalogue.ImportEntries,
    "export": catalogue.ExportEntries,
    "seed": catalogue.Seed,
    "synthesize": catalogue.Synthesize,
}

MEASURING = {
    "index": EvalIndex,
    "recorded": EvalRecorded,
    "asked": Asked,
    "diversity": Diversity,
    "bias": Bias,
    "stores": Stores,
    "qa-rag-1": RatersSheet,
    "list": ListTables,
    "table": RunTable,
}

COMMANDS: dict[str, Mapping[str, type[Command] | Group]] = {
    "Start": {"demo": Demo, "index": BuildIndex, "estimate": Estimate, "status": Status, "questions": ListQuestions},
    "Ask": {"ask": Ask, "chat": Chat, "explore": Explore, "serve": Serve, "mcp": Mcp},
    "Maintain": {
        "add": Add,
        "remove": Remove,
        "update": Update,
        "resume": Resume,
        "check": Check,
        "export": Export,
        "import": Group("Make an index of another system's graph.", {"graphrag": ImportGraphRAG}),
    },
    "Prepare": {
        "precompute": Precompute,
        "catalogue": Group("Answers prepared in advance, which `kraq ask -p qa-search` gives.", CATALOGUE),
    },
    "Research": {
        "eval": Group(EVAL, MEASURING, TableGroup),
        "report": Report,
        "select": Select,
        "testset": Group(
            "Questions with their answers and evidence, made from an index or labeled by you, to measure systems with.",
            {"make": MakeTestset, "update": UpdateTestset, "coverage": CoverTestset, "label": LabelQuestions},
        ),
        "data": Group("The public data sets of the tables.", {"list": ListData, "fetch": FetchData}),
        "domain": Domain,
        "optimize": Optimize,
        "pairs": MakePairs,
        "finetune": Group(
            "Train a small model for a step (LoRA).", {"generator": Generator, "asker": Asker, "drafter": Drafter}
        ),
        "lm": Group(
            "Small models that run in this process, and servers of others.", {"get": GetModel, "serve": ServeModel}
        ),
    },
}


def add_commands(app: typer.Typer) -> None:
    """Adds all of them. Typer makes one from the command line's words; `run` is left to the result callback."""
    for panel, commands in COMMANDS.items():
        for name, command in commands.items():
            if isinstance(command, Group):
                group = typer.Typer(cls=command.cls, no_args_is_help=True, help=command.help)
                for word, member in command.commands.items():
                    group.command(word, help=_help(member))(member)
                app.add_typer(group, name=name, rich_help_panel=panel)
            else:
                app.command(name, help=_help(command), rich_help_panel=panel)(command)


def _help(command: type[Command]) -> str:
    """Write the command's paragraphs as lines, which the terminal wraps."""
    return "\n\n".join(" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
