"""Lists the commands: their groups in help, their names, and the modules that are imported when they are called."""

import importlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import typer
from typer.core import TyperCommand, TyperGroup

from kraq_dspy.errors import counted, did_you_mean


class Runnable(Protocol):
    """A dataclass; its fields are the options and its docstring is the help."""

    def run(self) -> None: ...


def load(place: str) -> type[Runnable]:
    """Import a module of this folder, and return its class: "ask:Ask" is `Ask` of `ask.py`."""
    module, _, name = place.partition(":")
    command: type[Runnable] = getattr(importlib.import_module(f"kraq_dspy.apps.cli.{module}"), name)
    return command


def with_options(place: str) -> Any:
    """The class as typer's command: its options, and the function that is run."""
    app = typer.Typer(add_completion=False)
    app.command()(load(place))
    return typer.main.get_command(app)


@dataclass(frozen=True)
class Help:
    """What help shows of a command: its docstring, the arguments of its usage line, and a row (section, names, text)
    for each argument and option."""

    text: str
    usage: list[str]
    rows: list[list[str]]

    @property
    def first_line(self) -> str:
        return self.text.partition("\n\n")[0]


HELP = {
    place: Help(**each) for place, each in json.loads(Path(__file__).with_name("help.json").read_text("utf-8")).items()
}
"""Help by the places of `COMMANDS`. `python scripts/commands_reference.py` writes it from the classes, whose modules
take seconds to import."""


class LazyCommand(TyperCommand):
    """A command that imports its module when it is called, but not for help. `--help` has a line for each of the
    options that most people use, and `--help-all` has all of them, in groups."""

    def __init__(self, name: str, place: str) -> None:
        self._place, self._shown = place, HELP[place]
        self._is_short = False
        names = {"help_option_names": HELP_OPTIONS}
        super().__init__(
            name,
            help=self._shown.text,
            short_help=self._shown.first_line,
            context_settings=names,
            rich_markup_mode=None,
        )

    def load(self) -> None:
        """Take the options and what is run from the class."""
        if self.callback is None:
            of_class = with_options(self._place)
            self.params, self.callback = of_class.params, of_class.callback

    def make_context(self, info_name: str | None, args: list[str], *others: Any, **options: Any) -> Any:
        flags = {each for each in args if each.startswith("-")}
        if not flags or not flags <= {*HELP_OPTIONS}:
            self.load()
        return super().make_context(info_name, args, *others, **options)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *self._shown.usage]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._is_short = "--help-all" not in sys.argv
        super().format_help(ctx, formatter)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        formatter.write_paragraph()
        formatter.write_text(self._shown.first_line if self._is_short else self._shown.text)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments and options. A short help has the model, JSON, and the command's own options before those that
        it shares."""
        options = [row for row in self._shown.rows if row[0] != "Arguments"]
        ranked = sorted(options, key=lambda row: (row[1].split()[0] not in MOST_USED, row[0] != "Options"))
        hidden = ranked[SHOWN:] if self._is_short else []

        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for row in self._shown.rows:
            if row not in hidden:
                section, names, text = row
                is_grouped = section == "Arguments" or not self._is_short
                sections.setdefault(section if is_grouped else "Options", []).append((names, text))
        for heading, shown in sections.items():
            if shown:
                with formatter.section(heading):
                    formatter.write_dl(shown, col_max=34)
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{counted(len(hidden), 'more option')}, and how it works: --help-all")


HELP_OPTIONS = ["-h", "--help", "--help-all"]
MOST_USED = ("--lm", "--json")
SHOWN = 12  # options of a short help: ten, and these


class EvalGroup(TyperGroup):
    """`kraq eval docs.kraq questions.csv` asks an index, and `kraq eval answers.csv` scores recorded answers."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer's click is a package of its own
        is_placeholder = args[:1] in ([INDEX], [RECORDED]) and not Path(args[0]).exists()  # of the page of help
        if not args or is_placeholder or args[0] in {*self.commands} - {INDEX, RECORDED}:
            return super().resolve_command(ctx, args)

        first = args[0]
        if first.endswith(".kraq") or Path(first).is_dir():
            return super().resolve_command(ctx, [INDEX, *args])
        from kraq_dspy.eval.questions import FORMATS  # with DSPy, for which help need not wait

        if Path(first).is_file() or first.lower().endswith(FORMATS):
            return super().resolve_command(ctx, [RECORDED, *args])
        return ctx.fail(
            f"There is no index or file {first!r}{did_you_mean(first, self.commands)}. Tables: kraq bench list"
        )


class BenchGroup(TyperGroup):
    """`kraq bench kraq-2` and `kraq bench my.toml` run tables."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not args or args[0] in self.commands:
            return super().resolve_command(ctx, args)

        from kraq_dspy.papers.catalogue import papers_tables  # with DSPy

        first = args[0]
        if first in TABLES or first.endswith(".toml") or first in papers_tables():
            return super().resolve_command(ctx, [TABLE, *args])
        near = did_you_mean(first, [*self.commands, *TABLES, *papers_tables()])
        return ctx.fail(f"There is no table {first!r}{near}. `kraq bench list` has all tables of the papers.")


INDEX, RECORDED, TABLE = "INDEX", "FILE", "TABLE"
"""What a command is given in place of a second word."""

TABLES = tuple(
    sorted(file.stem for file in (Path(__file__).parents[2] / "papers" / "tables" / "definitions").glob("*.toml"))
)
"""The comparisons of this library, by name."""


@dataclass(frozen=True)
class Group:
    """Commands of two words, such as `kraq faq add`."""

    help: str
    commands: Mapping[str, str]
    cls: type[TyperGroup] = TyperGroup


EVAL = """Measure an index, or answers that were given already, with intervals and paired tests.

The same command resumes an interrupted run.
"""

BENCH = f"""Run the tables and figures of the five papers, and tables of your own.

kraq bench list: what each needs, and whether it was run. kraq bench kraq-2, or another id of that list, runs it.
--paper takes the paper's own settings. kraq bench COMPARISON: {", ".join(TABLES)}.

kraq bench TABLE.toml: a table written like those in kraq_dspy/papers/tables/definitions.
"""

COMMANDS: dict[str, Mapping[str, str | Group]] = {
    "Start": {
        "demo": "demo:Demo",
        "index": "index:BuildIndex",
        "status": "status:Status",
        "questions": "questions:ListQuestions",
    },
    "Ask": {
        "ask": "ask:Ask",
        "serve": "serving:Serve",
        "mcp": "mcp:Mcp",
    },
    "Maintain": {
        "update": "change:Update",
        "remove": "change:Remove",
        "check": "change:Check",
        "export": "exchange:Export",
        "import": Group(
            "Make an index of another system's graph.",
            {"graphrag": "exchange:ImportGraphRAG"},
        ),
    },
    "Prepare": {
        "precompute": "precompute:Precompute",
        "faq": Group(
            "Answers prepared in advance, which `kraq ask -p qa-search` gives.",
            {
                "add": "faq:AddEntries",
                "list": "faq:ListEntries",
                "approve": "faq:ApproveEntries",
                "remove": "faq:RemoveEntries",
                "seed": "faq_seed:Seed",
            },
        ),
    },
    "Research": {
        "eval": Group(
            EVAL,
            {
                INDEX: "evaluate:EvalIndex",
                RECORDED: "evaluate:EvalRecorded",
                "report": "evaluate:Report",
            },
            EvalGroup,
        ),
        "select": "select:Select",
        "testset": Group(
            "Questions with answers and evidence to measure systems with, made or labeled.",
            {
                "make": "testset:MakeTestset",
                "update": "testset:UpdateTestset",
                "coverage": "testset:CoverTestset",
                "label": "label:LabelQuestions",
                "qrels": "testset:WriteQrels",
            },
        ),
        "bench": Group(
            BENCH,
            {
                "list": "tables:ListTables",
                TABLE: "tables:RunTable",
                "data": "evaluate:ListData",
                "fetch": "evaluate:FetchData",
                "diversity": "audits:Diversity",
                "bias": "audits:Bias",
                "stores": "audits:Stores",
                "qa-rag-1": "audits:RatersSheet",
            },
            BenchGroup,
        ),
        "optimize": "optimize:Optimize",
        "finetune": Group(
            "Train a small model for a step (LoRA), on pairs.",
            {
                "pairs": "train:MakePairs",
                "generator": "train:Generator",
                "asker": "train:Asker",
                "drafter": "train:Drafter",
            },
        ),
        "lm": Group(
            "Small models that run in this process, and servers of others.",
            {
                "get": "lm:GetModel",
                "serve": "lm:ServeModel",
            },
        ),
    },
}


class Commands(TyperGroup):
    """`kraq` itself: the commands of `COMMANDS`, and groups of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for members in COMMANDS.values():
            self.commands.update({name: _made(name, member) for name, member in members.items()})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for panel, members in COMMANDS.items():
            with formatter.section(panel):
                formatter.write_dl([(name, _first_line(member)) for name, member in members.items()])


def _first_line(member: str | Group) -> str:
    return HELP[member].first_line if isinstance(member, str) else member.help.partition("\n")[0]


def _made(name: str, member: str | Group) -> Any:
    if isinstance(member, str):
        return LazyCommand(name, member)
    commands = {word: _made(word, each) for word, each in member.commands.items()}
    return member.cls(name=name, help=member.help, commands=commands, no_args_is_help=True, rich_markup_mode=None)
