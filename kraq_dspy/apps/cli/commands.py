"""Lists the commands: their groups in help, their names, and the modules that are imported when they are called."""

import importlib
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


@dataclass(frozen=True)
class Command:
    """A class of a module of this folder, and the first line of its help, which is read without importing it."""

    place: str
    help: str

    def load(self) -> type[Runnable]:
        """Import the module, and return the class."""
        module, _, name = self.place.partition(":")
        command: type[Runnable] = getattr(importlib.import_module(f"kraq_dspy.apps.cli.{module}"), name)
        return command


class LazyCommand(TyperCommand):
    """A command that imports its module when it is called. `--help` has a line for each of the options that most people
    use, and `--help-all` has all of them, in groups."""

    def __init__(self, name: str, command: Command) -> None:
        names = {"help_option_names": ["-h", "--help", "--help-all"]}
        super().__init__(name, short_help=command.help, context_settings=names, rich_markup_mode=None)
        self._command = command
        self._is_short = False

    def load(self) -> None:
        """Take the options, the help and what is run from the class."""
        if self.callback is not None:
            return
        command = self._command.load()
        app = typer.Typer(add_completion=False)
        app.command()(command)
        of_class: Any = typer.main.get_command(app)
        self.params, self.callback = of_class.params, of_class.callback
        for each in of_class.params:
            if each.param_type_name == "option":
                each.metavar = each.metavar or VALUES.get(each.display_type(None))

        paragraphs = (command.__doc__ or "").split("\n\n")  # whose lines the terminal wraps
        self.help = "\n\n".join(" ".join(part.split()) for part in paragraphs)

    def make_context(self, *args: Any, **options: Any) -> Any:
        self.load()
        return super().make_context(*args, **options)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._is_short = "--help-all" not in sys.argv
        super().format_help(ctx, formatter)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        formatter.write_paragraph()
        formatter.write_text(self._command.help if self._is_short else self.help)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments and options. A short help has the model, JSON, and the command's own options before those that
        it shares."""
        params: list[Any] = self.params
        options = [each for each in params if each.param_type_name == "option"]
        ranked = sorted(options, key=lambda each: (each.name not in MOST_USED, bool(each.rich_help_panel)))
        hidden = ranked[SHOWN:] if self._is_short else []

        sections: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for each in params:
            if each not in options:
                sections["Arguments"].append((each.metavar or each.name.upper(), each.help))
            elif each not in hidden:
                panel = None if self._is_short else each.rich_help_panel
                sections.setdefault(panel or "Options", []).append(each.get_help_record(ctx))
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows, col_max=34)
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{counted(len(hidden), 'more option')}, and how it works: --help-all")


VALUES = {
    "<int range>": "N", "<int>": "N", "<float range>": "X", "<float>": "X",
    "<str>": "TEXT", "<list[str]>": "TEXT ...", "<path>": "PATH",
}  # fmt: skip
"""What stands for a value in place of typer's name of its type."""
MOST_USED = ("lm", "json")
SHOWN = 12  # options of a short help: ten, and these


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
        from kraq_dspy.papers.catalogue import papers_tables  # with DSPy

        if not args or args[0] in self.commands:
            return super().resolve_command(ctx, args)

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
    commands: Mapping[str, Command]
    cls: type[TyperGroup] = TyperGroup


EVAL = """Measure an index, or answers that were given already, with intervals and paired tests.

The same command resumes an interrupted run.
"""

BENCH = f"""Run the tables and figures of the five papers, and tables of your own.

kraq bench list: what each needs, and whether it was run. kraq bench kraq-2, or another id of that list, runs it.
--paper takes the paper's own settings. kraq bench COMPARISON: {", ".join(TABLES)}.

kraq bench TABLE.toml: a table written like those in kraq_dspy/papers/tables/definitions.
"""

COMMANDS: dict[str, Mapping[str, Command | Group]] = {
    "Start": {
        "demo": Command("demo:Demo", "Index bundled passages, ask them, measure, and pick a retriever by a test set."),
        "index": Command("index:BuildIndex", "Index CORPUS: graph, communities, summaries, and a question for each."),
        "status": Command("status:Status", "Contents of the index, what made it, its cost, and its failures."),
        "questions": Command(
            "questions:ListQuestions", "List the representative questions, with the passages that answer them."
        ),
    },
    "Ask": {
        "ask": Command("ask:Ask", "Answer QUESTION from the index, and show the evidence."),
        "serve": Command("serving:Serve", "Serve one or more indexes: a page and a JSON API."),
        "mcp": Command("mcp:Mcp", "Offer the index to agents by the Model Context Protocol."),
    },
    "Maintain": {
        "update": Command("change:Update", "Update the index from a corpus: add, redo and remove documents."),
        "remove": Command("change:Remove", "Remove documents, with all that was made from them alone."),
        "check": Command("change:Check", "Verify an index: nothing is damaged, stale or missing."),
        "export": Command("exchange:Export", "Write the index as tables, a graph, JSON lines or a data set."),
        "import": Group(
            "Make an index of another system's graph.",
            {
                "graphrag": Command(
                    "exchange:ImportGraphRAG", "Make an index of what Microsoft GraphRAG (version 2 or 3) wrote."
                ),
            },
        ),
    },
    "Prepare": {
        "precompute": Command("precompute:Precompute", "Prepare what programs look up."),
        "faq": Group(
            "Answers prepared in advance, which `kraq ask -p qa-search` gives.",
            {
                "add": Command("faq:AddEntries", "Add a question and its answer, or answer a question that is there."),
                "list": Command(
                    "faq:ListEntries", "List the entries by number, and how programs failed at their questions."
                ),
                "approve": Command(
                    "faq:ApproveEntries", "Serve these entries from now on, as they and their documents are now."
                ),
                "remove": Command("faq:RemoveEntries", "Take entries out."),
                "seed": Command(
                    "faq_seed:Seed", "Answer the representative questions, and keep the answers for review."
                ),
            },
        ),
    },
    "Research": {
        "eval": Group(
            EVAL,
            {
                INDEX: Command(
                    "evaluate:EvalIndex", "Ask an index every question of a file, and score answers and evidence."
                ),
                RECORDED: Command("evaluate:EvalRecorded", "Score the answers of a file, which were given already."),
                "report": Command("evaluate:Report", "Make the report of `kraq eval` again from its rows."),
            },
            EvalGroup,
        ),
        "select": Command("select:Select", "Find the retriever, passage size and k that find most evidence."),
        "testset": Group(
            "Questions with answers and evidence to measure systems with, made or labeled.",
            {
                "make": Command(
                    "testset:MakeTestset", "Write questions that the index answers, with answers and evidence."
                ),
                "update": Command("testset:UpdateTestset", "Update a test set after the index has changed."),
                "coverage": Command(
                    "testset:CoverTestset", "List the communities that your own questions never touch."
                ),
                "label": Command("label:LabelQuestions", "Mark which passages answer questions that people asked."),
                "qrels": Command(
                    "testset:WriteQrels",
                    "Write the evidence of a test set as TREC qrels, for trec_eval and tools like it.",
                ),
            },
        ),
        "bench": Group(
            BENCH,
            {
                "list": Command("tables:ListTables", "List the papers' tables and figures, and which have a report."),
                TABLE: Command("tables:RunTable", "Run a table over data sets: index, ask every system, report."),
                "data": Command(
                    "evaluate:ListData", "Name the data sets that can be fetched, and those that are here."
                ),
                "fetch": Command(
                    "evaluate:FetchData", "Download a data set from the hub, or take BioASQ's files over."
                ),
                "diversity": Command("audits:Diversity", "Measure how diverse the passages of retrievers are."),
                "bias": Command("audits:Bias", "Compare each theme's share of the questions and of the passages."),
                "stores": Command("audits:Stores", "Time K2RAG's stores of CORPUS as it is and summarised first."),
                "qa-rag-1": Command(
                    "audits:RatersSheet", "Make QA-RAG's table 1: how often question-answer pairs are good."
                ),
            },
            BenchGroup,
        ),
        "optimize": Command("optimize:Optimize", "Optimize a step or a program, and measure it on other examples."),
        "finetune": Group(
            "Train a small model for a step (LoRA), on pairs.",
            {
                "pairs": Command("train:MakePairs", "Make (summary, question) pairs with a teacher model."),
                "generator": Command("train:Generator", "Train the question generator on (summary, question) pairs."),
                "asker": Command("train:Asker", "Train what words questions on (statement, answer, question) pairs."),
                "drafter": Command("train:Drafter", "Train the drafter of Speculative RAG on its rationales."),
            },
        ),
        "lm": Group(
            "Small models that run in this process, and servers of others.",
            {
                "get": Command("lm:GetModel", "Download a small language model that runs in this process."),
                "serve": Command(
                    "lm:ServeModel", "Print vLLM's command to serve MODEL and its adapters, and start it."
                ),
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
                formatter.write_dl([(name, member.help.partition("\n")[0]) for name, member in members.items()])


def _made(name: str, member: Command | Group) -> Any:
    if isinstance(member, Command):
        return LazyCommand(name, member)
    commands = {word: _made(word, each) for word, each in member.commands.items()}
    return member.cls(name=name, help=member.help, commands=commands, no_args_is_help=True, rich_markup_mode=None)
