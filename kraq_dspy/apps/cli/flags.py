"""Makes options of the command line of the programs' and retrievers', as each declares them."""

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from kraq_dspy.programs.shared.spec import Option, Word, options_of, words_of
from kraq_dspy.workspace.choices import DEFAULT_PROGRAM, ProgramChoice, by_flags, choose_program
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS


def _completed(names: Any) -> Any:
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


@dataclass(frozen=True)
class ChosenProgram:
    """A program over a retriever, by name."""

    program: Annotated[
        str,
        typer.Option(
            "--program",
            "-p",
            help=f"{', '.join(PROGRAMS.own)}, or one that another package registered.",
            autocompletion=_completed(PROGRAMS.own),
        ),
    ] = DEFAULT_PROGRAM
    retriever: Annotated[
        str | None,
        typer.Option(
            "--retriever",
            "-r",
            help=f"What finds the passages: {', '.join(map(str, RETRIEVERS.own.values()))}.",
            show_default="adaptive; dense where the index has no graph",
            autocompletion=_completed(RETRIEVERS.own),
        ),
    ] = None
    program_option: Annotated[
        list[str] | None,
        typer.Option("-P", "--program-option", metavar="NAME=VALUE", help="Any option of the program; repeatable."),
    ] = None
    retriever_option: Annotated[
        list[str] | None,
        typer.Option("--retriever-option", metavar="NAME=VALUE", help="Any option of the retriever; repeatable."),
    ] = None

    def choice(self, flags: Any) -> ProgramChoice:
        """With the values of an instance of PROGRAM_FLAGS. Raises ConfigError before anything is opened."""
        values = dataclasses.asdict(flags)
        words = {
            f"--{name.replace('_', '-')}": Word(value) if isinstance(value, str) else value
            for name, value in values.items()
            if value is not None and name != "help_all"
        }
        return choose_program(
            self.program,
            self.retriever,
            {**by_flags(self.program, words), **words_of("--program-option", self.program_option or ())},
            retriever_options=words_of("--retriever-option", self.retriever_option or ()),
        )


def _declared() -> dict[str, list[tuple[str, Option]]]:
    """Each flag with the programs that have it."""
    declared: defaultdict[str, list[tuple[str, Option]]] = defaultdict(list)
    for name, spec in PROGRAMS.own.items():
        for each in options_of(spec.options).values():
            declared[each.flag].append((name, each))
    return dict(declared)


def _help(owners: list[tuple[str, Option]]) -> str:
    """The help of each meaning, behind the programs that it has it in."""
    meanings: defaultdict[str, list[str]] = defaultdict(list)
    for program, each in owners:
        meanings[each.help].append(program)
    return " ".join(f"{', '.join(programs)}: {meaning}" for meaning, programs in meanings.items())


def _default(owners: list[tuple[str, Option]]) -> str | bool:
    """That of the default program, or of the first that has the flag; False where there is none to show."""
    program, each = next((owner for owner in owners if owner[0] == DEFAULT_PROGRAM), owners[0])
    if each.default is None or each.is_required:
        return False
    shown = str(each.default).lower() if isinstance(each.default, bool) else str(each.default)
    return shown if len({one.default for _, one in owners}) == 1 else f"{shown} for {program}"


def _group() -> Any:
    fields: list[Any] = []
    for flag, owners in _declared().items():
        kinds = owners[0][1].kinds
        kind: Any = bool if bool in kinds else str
        words = (flag, "-k") if flag == "--k" else (f"{flag}/--no-{flag[2:]}",) if kind is bool else (flag,)
        option = typer.Option(
            *words,
            metavar="" if kind is bool else "X" if float in kinds else "N" if int in kinds else "NAME",
            help=_help(owners),
            show_default=_default(owners),
            hidden=flag not in COMMON,
            rich_help_panel="Options" if flag in COMMON else None,
        )
        fields.append((flag[2:].replace("-", "_"), Annotated[kind | None, option], dataclasses.field(default=None)))
    fields.append(("help_all", Annotated[bool, HELP_ALL], dataclasses.field(default=False)))
    return dataclasses.make_dataclass(
        "ProgramFlags", fields, frozen=True, namespace={"PANEL": "Options of single programs"}
    )


def _show_all(context: typer.Context, is_wanted: bool) -> None:
    if is_wanted:
        for parameter in context.command.params:
            parameter.hidden = False  # type: ignore[attr-defined]
        typer.echo(context.get_help())
        raise typer.Exit


COMMON = ("--k",)
HELP_ALL = typer.Option(
    "--help-all",
    callback=_show_all,
    is_eager=True,
    rich_help_panel="Options",
    help="Show this message with the options of single programs, and exit.",
)
PROGRAM_FLAGS: Any = _group()
"""An option group with every option of every program of this library, once."""
