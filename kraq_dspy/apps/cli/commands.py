"""Lists the commands: in which group of help each stands, and under which name."""

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup
from typer.models import OptionInfo

from kraq_dspy.apps.cli.ask import ask
from kraq_dspy.apps.cli.asked import asked
from kraq_dspy.apps.cli.catalogue import add as catalogue_add
from kraq_dspy.apps.cli.catalogue import approve, import_, list_, seed, synthesize
from kraq_dspy.apps.cli.catalogue import export as catalogue_export
from kraq_dspy.apps.cli.catalogue import remove as catalogue_remove
from kraq_dspy.apps.cli.change import add, check, remove, resume, update
from kraq_dspy.apps.cli.chat import chat
from kraq_dspy.apps.cli.demo import demo
from kraq_dspy.apps.cli.evaluate import fetch, report
from kraq_dspy.apps.cli.evaluate import index as eval_index
from kraq_dspy.apps.cli.evaluate import list_ as list_data
from kraq_dspy.apps.cli.exchange import export
from kraq_dspy.apps.cli.index import estimate, index, questions
from kraq_dspy.apps.cli.lm import get
from kraq_dspy.apps.cli.mcp import mcp
from kraq_dspy.apps.cli.optimize import domain, optimize
from kraq_dspy.apps.cli.precompute import precompute
from kraq_dspy.apps.cli.serving import explore, serve
from kraq_dspy.apps.cli.status import status
from kraq_dspy.apps.cli.tables import TABLES, table
from kraq_dspy.apps.cli.tables import list_ as list_tables
from kraq_dspy.apps.cli.train import drafter, generator, pairs
from kraq_dspy.errors import did_you_mean

Command = Callable[..., Any]


class TableGroup(TyperGroup):
    """`kraq eval docs.kraq questions.csv` is `kraq eval index docs.kraq questions.csv`; `kraq eval kraq-2` and
    `kraq eval my.toml` are `kraq eval table kraq-2` and `kraq eval table my.toml`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer's click is a package of its own
        from kraq_dspy.eval.papers import papers_tables  # with DSPy, for which help need not wait

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

kraq eval TABLE.toml: a table of your own, written like those in kraq_dspy/eval/tables/definitions.
"""

CATALOGUE = (
    catalogue_add, list_, approve, catalogue_remove, import_, catalogue_export, seed,
    synthesize,
)  # fmt: skip

COMMANDS: dict[str, Sequence[Command | Group]] = {
    "Start": (demo, index, estimate, status, questions),
    "Ask": (ask, chat, explore, serve, mcp),
    "Maintain": (add, remove, update, resume, check, export),
    "Prepare": (
        precompute,
        Group("catalogue", "Answers prepared in advance, which `kraq ask -p qa-search` gives.", CATALOGUE),
    ),
    "Research": (
        Group("eval", EVAL, (eval_index, asked, list_tables, table), TableGroup), report,
        Group("data", "The public data sets of the tables.", (list_data, fetch)), domain, optimize, pairs,
        Group("finetune", "Train a small model for a step (LoRA).", (generator, drafter)),
        Group("lm", "Small models that run in this process.", (get,)),
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


WORDS: dict[Any, str] = {bool: "", int: "N", float: "X", Path: "PATH", str: "NAME"}
"""What help calls a value without a metavar, by its type."""


def flat(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the fields of its option groups as parameters of its own, which is all that typer knows.

    An option group is a dataclass whose fields are typer options with defaults; its `PANEL` heads them in help,
    after the others. The command is handed the dataclass, so what thirty commands share is declared and read once.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    common: list[inspect.Parameter] = []
    own: list[inspect.Parameter] = []
    headed: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        group = parameter.annotation
        if not dataclasses.is_dataclass(group):
            own.append(_parameter(name, parameter.default, group, None))
            continue
        groups[name] = group
        hints, panel = get_type_hints(group, include_extras=True), getattr(group, "PANEL", None)
        fields = [_parameter(each.name, each.default, hints[each.name], panel) for each in dataclasses.fields(group)]
        (headed if panel else common).extend(fields)
    parameters = common + own + headed

    @functools.wraps(command)
    def with_groups(**values: Any) -> Any:
        parts = {
            name: group(**{field.name: values.pop(field.name) for field in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        return command(**values, **parts)

    described: Any = with_groups
    described.__signature__ = signature.replace(parameters=parameters)  # typer reads options from the signature
    described.__doc__ = "\n\n".join(" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
    described.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_groups


def _parameter(name: str, default: Any, annotation: Any, panel: str | None) -> inspect.Parameter:
    """As keyword. A flag is called as its parameter is, without a --no-... unless it is on by default."""
    if get_origin(annotation) is Annotated:
        kind, *notes = get_args(annotation)
        option = copy.copy(notes[0])
        if isinstance(option, OptionInfo):
            option.rich_help_panel = option.rich_help_panel or panel
            if option.metavar is None:
                kinds = [each for each in get_args(kind) or (kind,) if each is not type(None)]
                one = get_args(kinds[0])[0] if get_origin(kinds[0]) is list else kinds[0]
                option.metavar = WORDS.get(one)
            if default is False and option.default is ... and not option.param_decls:
                option.param_decls = (f"--{name.replace('_', '-')}",)
        annotation = Annotated[kind, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
