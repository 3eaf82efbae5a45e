"""Declares the options that several commands share, opens an index with them, and checks what they name.

A command is a dataclass whose fields are its options; those that others have, too, it inherits from here.
"""

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, dataclass_transform

from typer import Argument, Option

from kraq_dspy._internal.options import options_of
from kraq_dspy.apps.cli.terminal import note
from kraq_dspy.asset.scope import Scope
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError

if TYPE_CHECKING:
    from kraq_dspy.workspace import Workspace


CommandT = TypeVar("CommandT")
DeclaredT = TypeVar("DeclaredT")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def command_class(command: type[CommandT]) -> type[CommandT]:
    """What every command is: a frozen dataclass whose fields are its arguments and options."""
    return dataclass(frozen=True, kw_only=True)(command)


Flag = partial(Option, metavar="")
ScopeOption = partial(Option, rich_help_panel="Who asks, if documents have labels")

Repeated = list[str] | None
"""An option that may be given several times."""

IndexDir = Annotated[Path, Argument(metavar="DIR", help="The index folder, as made by `kraq index`.")]
Corpus = Annotated[
    Path, Argument(metavar="CORPUS", help="A file or folder of txt, md, html, pdf, jsonl, csv or parquet.")
]
Questions = Annotated[
    Path, Argument(metavar="QUESTIONS", help="csv, jsonl or parquet: questions, with answers or evidence if known.")
]
Json = Annotated[bool, Flag("--json", help="Print only JSON on standard output.")]
Seed = Annotated[int, Option("--seed", help="Random seed for sampling, clustering and bootstrapping.")]
First = Annotated[int | None, Option("--limit", min=1, help="Only the first N.")]
DataDir = Annotated[Path, Option("--data", metavar="DIR", help="Folder of data sets, or of one data set.")]
NewIndex = Annotated[
    Path | None,
    Option("--out", "-o", metavar="DIR", help="The index folder to write. Default: the source's name + .kraq"),
]
Human = Annotated[
    Path | None,
    Option(
        "--human",
        metavar="FILE",
        help="Human questions that decide with the two halves of QUESTIONS.",
    ),
]
Host = Annotated[str, Option("--host", metavar="ADDRESS", help="Address to listen on; a public one needs a token.")]
Port = Annotated[int, Option("--port", min=0, max=65535, help="Port to listen on; 0 takes a free one.")]


@command_class
class Owner:
    """Options of commands that only the owner of an index with labels may run."""

    as_owner: Annotated[bool, ScopeOption("--owner", metavar="", help="Read everything, with labels and without.")] = (
        False
    )

    def scope(self) -> Scope | None:
        """Tell who asks; None if nobody said."""
        return Scope.everything() if self.as_owner else None

    @contextmanager
    def readable(self, index_dir: Path) -> Iterator[Index]:
        """Open the records that the scope may read, without a model. Raises ScopeError without a
        scope."""
        scope = self.scope()
        if scope is None or scope.is_everything:
            with Index.open(index_dir) as index:
                (index.require_no_labels if scope is None else index.require_labels)()
                yield index
            return
        with scoped_view(index_dir, scope) as view:
            note_if_empty(view)
            yield view.index


@command_class
class Scoped(Owner):
    """Options that say who asks an index with labels."""

    as_label: Annotated[
        Repeated,
        ScopeOption("--scope", metavar="LABEL", help="Read what somebody with this label may read; repeatable."),
    ] = None

    def scope(self) -> Scope | None:
        """Return who asks; None if no option says so. Raises ScopeError for an empty label,
        ConfigError for both at once."""
        if self.as_owner and self.as_label:
            raise ConfigError("--owner reads everything, --scope LABEL what the label allows. Give one of them.")
        return Scope(self.as_label) if self.as_label else super().scope()


@contextmanager
def scoped_view(index_dir: Path, scope: Scope) -> "Iterator[Workspace]":
    """What the scope may read of an index, without a model."""
    from kraq_dspy.models.lms.roles import LanguageModels  # with DSPy, which records need not wait for
    from kraq_dspy.workspace import Workspace

    with Workspace.open(index_dir, lm=LanguageModels()) as space, space.scoped(scope) as view:
        yield view


def note_if_empty(scoped: "Workspace") -> None:
    """Tell who mistyped a label; nothing of what others may read: an empty scope shows in every answer."""
    if scoped.scope is None or scoped.part is None or scoped.part.document_ids:
        return
    labels = ", ".join(map(repr, sorted(scoped.scope.labels)))
    several = " Several labels are several options: --scope ONE --scope OTHER." if "," in labels else ""
    note(f"no document has the label {labels}: nothing can be read.{several}")


def with_options_of(declared: type, *names: str, **flags: str) -> Callable[[type[CommandT]], type[CommandT]]:
    """Give a command the options that a dataclass declares, or those of `names`: default, range and help stand there.

    `flags` are other words than `--name`: `r="--rank"`. `chosen` reads them.
    """

    def decorate(command: type[CommandT]) -> type[CommandT]:
        fields = []
        for name, option in options_of(declared).items():
            if names and name not in names:
                continue

            value_type: Any = option.kinds[0] if option.kinds else type(option.choices[0])
            is_number = value_type in (int, float)
            shell_option = Option(
                *([flags[name]] if name in flags else []),
                min=option.least if is_number else None,
                max=option.most if is_number else None,
                help=option.help,
            )
            annotation: Any = Annotated[value_type, shell_option]
            fields.append((name, annotation, dataclasses.field(default=option.default)))

        return dataclasses.make_dataclass(
            command.__name__, fields, bases=(command,), frozen=True, kw_only=True,
            namespace={"__doc__": command.__doc__, "__module__": command.__module__},
        )  # fmt: skip

    return decorate


def chosen(declared: type[DeclaredT], command: object, **others: Any) -> DeclaredT:
    """The options that a command was given by `with_options_of`; `others` are those that it does not have."""
    names = [name for name in options_of(declared) if name not in others]
    return declared(**{name: getattr(command, name) for name in names}, **others)


def require_writable(*folders: Path) -> None:
    """Raises ConfigError for a folder that cannot be made or written. Leaves nothing there."""
    for folder in folders:
        _require_room(folder.absolute(), folder)


def missing(options: Mapping[str, object]) -> ConfigError:
    """An error that names all of the options that are None, so that they need not be found out one by one."""
    return ConfigError(f"Missing: {'; '.join(name for name, value in options.items() if value is None)}.")


def require_writable_file(file: Path) -> None:
    """Raises ConfigError for a file that cannot be made or replaced. Leaves nothing there."""
    if file.is_dir():
        raise ConfigError(f"{str(file)!r} is a folder; --out names a file here.")
    _require_room(file.absolute().parent, file)


def _require_room(folder: Path, target: Path) -> None:
    """Try it with a file without a name, since permissions do not say everything: root may write
    to /proc, and cannot."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not existing.is_dir():
        raise ConfigError(f"{str(target)!r} cannot be written: {str(existing)!r} is a file. Choose another --out.")
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise ConfigError(
            f"{str(target)!r} cannot be written: nothing can be made in {str(existing)!r} ({error.strerror}). Choose "
            "another --out."
        ) from error
