"""Turns a command whose parameters are option groups into one that typer reads: a parameter for every option."""

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

from kraq_dspy.errors import did_you_mean

WORDS: dict[Any, str] = {bool: "", int: "N", float: "X", Path: "PATH"}  # what help calls a value without a metavar


def flat(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the fields of its option groups as parameters of its own, which is all that typer knows.

    An option group is a dataclass whose fields are typer options with defaults; its `PANEL` heads them in help,
    after the others. The command is handed the dataclass, so what thirty commands share is declared and read once. An
    option is called as its parameter is (`max_calls`, `--max-calls`) unless it says otherwise.
    """
    signature = inspect.signature(command, eval_str=True)
    groups = {
        name: group
        for name, parameter in signature.parameters.items()
        if (group := _group(parameter.annotation)) is not None
    }
    own = [
        _parameter(name, parameter.default, parameter.annotation, None)
        for name, parameter in signature.parameters.items()
        if name not in groups
    ]
    common: list[inspect.Parameter] = []
    headed: list[inspect.Parameter] = []
    for group in groups.values():
        hints = get_type_hints(group, include_extras=True)
        panel = getattr(group, "PANEL", None)
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
    described.__signature__ = signature.replace(parameters=parameters)
    described.__doc__ = "\n\n".join(" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
    described.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_groups


def _group(annotation: Any) -> Any:
    """The option group that a parameter is, as its type or, for one made at run time, as a note on it; else None."""
    candidates = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    return next((each for each in candidates if isinstance(each, type) and dataclasses.is_dataclass(each)), None)


def _parameter(name: str, default: Any, annotation: Any, panel: str | None) -> inspect.Parameter:
    """As keyword; its option under the panel's head, with a short word for its value."""
    if get_origin(annotation) is Annotated:
        kind, *notes = get_args(annotation)
        notes = [copy.copy(note) for note in notes]
        for note in notes:
            if isinstance(note, OptionInfo):
                if note.default is ... and not note.param_decls:
                    word = name.replace("_", "-")
                    note.param_decls = (f"--{word}/--no-{word}" if default is True else f"--{word}",)
                note.rich_help_panel = note.rich_help_panel or panel
                parts = (kind,) if get_origin(kind) is Literal else get_args(kind) or (kind,)
                bare = [part for part in parts if part is not type(None)]
                if note.metavar is None:
                    note.metavar = WORDS.get(bare[0], "NAME" if bare[0] is str else None)
                if get_origin(bare[0]) is Literal:
                    _take_choices(note, get_args(bare[0]))
                    kind = str if kind is bare[0] else str | None
        annotation = Annotated[(kind, *notes)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _take_choices(option: OptionInfo, names: tuple[str, ...]) -> None:
    """An option of a few words, which a word near to one of them is told about (typer's own message begins with words
    of pydantic)."""

    def parsed(value: str) -> str:
        if value not in names:
            raise typer.BadParameter(
                f"There is no {value!r}{did_you_mean(value, names)}; there are: {', '.join(names)}."
            )
        return value

    option.parser = parsed
    option.metavar = f"<{'|'.join(names)}>"
    option.autocompletion = lambda incomplete: [name for name in names if name.startswith(incomplete)]
