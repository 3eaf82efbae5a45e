"""Declares the options of commands that ask models: settings, models, programs, columns and limits."""

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import dspy
import typer
from typer import Option

from kraq_dspy._internal.options import options_of
from kraq_dspy.apps.cli.options import Flag, Owner, Repeated, Scoped, command_class, note_if_empty
from kraq_dspy.apps.cli.terminal import note, say
from kraq_dspy.asset.consent import (
    Destination,
    Named,
    asked_about,
    open_questions,
    require_agreed,
    settings_file,
    without_models,
)
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, UntrustedError
from kraq_dspy.eval.columns import QuestionColumns
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.models.lms.meter import Limits as MeterLimits, Meter, prices_of
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.optimize.asked_by import signatures_asked
from kraq_dspy.settings import ColumnSettings, RoleSettings, Settings, read_settings
from kraq_dspy.spec import words_of
from kraq_dspy.state import StepStates
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import DEFAULT_PROGRAM, ProgramChoice, choose_program, passages_option
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS

ModelOption = partial(Option, rich_help_panel="Models and settings")
ColumnOption = partial(Option, rich_help_panel="Columns of csv, jsonl and parquet")
QuestionOption = partial(Option, rich_help_panel="Columns of the questions")
LimitOption = partial(Option, rich_help_panel="Limits of this run")


@dataclass(frozen=True)
class Sets:
    """Marks an option that stands for a setting, by its section and its key."""

    section: str
    key: str


@command_class
class Models:
    """The settings of a run: a file, then the command line's options, which win."""

    config: Annotated[
        Path | None,
        ModelOption("--config", "-c", metavar="FILE", help="Settings; kraq.toml of this folder if it is there."),
    ] = None
    trust: Annotated[
        bool,
        ModelOption(
            "--trust",
            metavar="",
            help="Use, from now on, the servers, keys and models that files here name.",
        ),
    ] = False

    lm: Annotated[
        str | None,
        ModelOption(metavar="MODEL", help="Model of every role: embedded, openai/NAME, hosted_vllm/NAME."),
    ] = None
    api_base: Annotated[
        str | None,
        ModelOption(
            metavar="URL",
            help="Address of the model's server, with /v1; several with commas.",
        ),
    ] = None

    def settings(self, base: Settings | None = None) -> Settings:
        """Read the settings of the file, or of a kraq.toml here, or take `base`; then apply the
        command line's options.

        Raises ConfigError. Raises UntrustedError if the kraq.toml here names servers or keys that
        the user has not agreed to.
        """
        settings = self._with_model(self._settings_of_file(base))
        for name, annotation in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            for mark in get_args(annotation):
                if isinstance(mark, Sets) and value:
                    setting = str(value.resolve()) if isinstance(value, Path) else value
                    settings = with_sections(settings, {mark.section: {mark.key: setting}})
        return settings

    def _with_model(self, settings: Settings) -> Settings:
        """The settings with the model of --lm in every role."""
        if self.lm is None:
            if self.api_base is not None:
                raise ConfigError("--api-base says where a model is served; name the model too, with --lm.")
            return settings
        if self.lm.endswith(".gguf") and (self.lm.startswith((".", "/")) or "/" not in self.lm):
            raise ConfigError(f"--lm {self.lm} is a file of weights; to run it in this process: --lm gguf/{self.lm}")

        if self.lm == "embedded":
            return dataclasses.replace(settings, roles={"default": RoleSettings()})
        before = settings.role("default")
        is_same = (before.api_base, before.model.partition("/")[0]) == (self.api_base, self.lm.partition("/")[0])
        key = before.api_key_env if is_same else None  # which goes to the server that it was named for
        role = dataclasses.replace(before, model=self.lm, api_base=self.api_base, api_key_env=key)
        return dataclasses.replace(settings, roles={"default": role})

    def _settings_of_file(self, base: Settings | None) -> Settings:

        here = Path("kraq.toml")
        file = self.config or (here if base is None and here.is_file() else None)
        if file is None and base is not None:
            return base
        try:
            settings = read_settings(file)
        except OSError as error:
            raise ConfigError(f"The settings file {str(file)!r} cannot be read: {error.strerror}.") from error
        if file is None or self.config is not None:
            return settings

        settings = self._agreed(settings_file(file), settings)
        if places := asked_about(settings):
            note("; ".join(map(str, places)), label=f"{file} of this folder: ")
        return settings

    def settings_of(self, index_dir: Path) -> Settings:
        """Read the index's own settings, then apply the command line's options. Raises
        UntrustedError if they name servers or keys that the user has not agreed to."""

        with Index.open(index_dir) as index:
            made_by, settings, encoder_name = index.made_by, index.manifest.settings, index.manifest.encoder_name
        if self.config is None:
            settings = self._agreed(made_by, settings)
        settings = self.settings(settings)
        return dataclasses.replace(settings, encoder=resolve_encoder(settings.encoder, encoder_name))

    def states(self) -> StepStates | None:
        """Return the states that `kraq optimize` saved and this command was given; None if it takes none."""
        return None

    def limits(self, settings: Settings) -> MeterLimits | None:
        """Return the limits, with the prices from the settings; None without limits."""
        return None

    @contextmanager
    def opened(self, index_dir: Path, *, write: bool = False) -> Iterator[Workspace]:
        """Open the index with the settings, the models and the limits of this command."""

        settings = self.settings_of(index_dir)
        embedder = load_embedder(settings.encoder)
        meter = Meter(self.limits(settings))
        models = LanguageModels(settings, embedder=embedder, meter=meter, states=self.states())
        with Workspace.open(index_dir, settings=settings, embedder=embedder, lm=models, write=write) as space:
            yield space

    def _agreed(self, source: Named, settings: Settings) -> Settings:
        """Return the settings that `source` names, once the user has agreed to their servers."""

        if self.lm is not None and open_questions(source, settings):
            settings = without_models(settings)
        self.require_agreed(source, asked_about(settings))
        return settings

    def require_agreed(self, source: Named, places: Sequence[Destination]) -> None:
        """Raise UntrustedError unless the user agrees to what a file names; a terminal asks for
        it."""

        try:
            require_agreed(source, places, trust=self.trust)
        except UntrustedError as error:
            if self.trust or not _is_terminal():
                raise
            typer.echo(str(error), err=True)
            if not typer.confirm("Agree?", err=True):
                raise typer.Exit(1) from None
            require_agreed(source, places, trust=True)


def with_sections(settings: Settings, sections: Mapping[str, Mapping[str, Any]]) -> Settings:
    """The settings with these values by section and key."""
    changed = {name: dataclasses.replace(getattr(settings, name), **values) for name, values in sections.items()}
    return dataclasses.replace(settings, **changed)


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


@command_class
class Owns(Owner, Models):
    """The options of what works with all of an index: its models, and that its owner asks."""

    @contextmanager
    def opened(self, index_dir: Path, *, write: bool = False) -> Iterator[Workspace]:
        """Open the part of the index that the scope may read. Raises ScopeError without a scope."""
        scope = self.scope()
        with super().opened(index_dir, write=write) as space:
            if scope is None:
                _ = space.index  # refused now, before anything is loaded for it
                yield space
            else:
                with space.scoped(scope) if write else space.handed_over(scope) as scoped:
                    note_if_empty(scoped)
                    yield scoped


@command_class
class TakesStates(Models):
    """What asks steps that `kraq optimize` may have tuned."""

    optimized: Annotated[
        list[Path] | None,
        Option("--optimized", metavar="FILE", help="Optimized program of `kraq optimize`; repeatable."),
    ] = None

    def states(self) -> StepStates:

        return StepStates(self.optimized or ())

    def require_asked(self, command: str, *askers: str, programs: Sequence[dspy.Module] = ()) -> None:
        """Raise StateError for a state of a step that neither these parts of the library (`asked_by.ASKERS`) nor the
        programs ask."""
        if self.optimized:
            self.states().require_asked(programs, f"kraq {command}", signatures_asked(*askers))


@command_class
class Reads(Scoped, Owns):
    """The options of what answers from an index: its models, and who asks."""


@command_class
class Calls(Models):
    concurrency: Annotated[
        int | None, ModelOption(min=1, help="Model calls in flight at once."), Sets("run", "concurrency")
    ] = None

    def settings_of(self, index_dir: Path) -> Settings:
        """Read the index's own settings. Raises ConfigError for a kraq.toml here that `kraq index` would reject, too:
        who runs a change there means it to count."""

        here = Path("kraq.toml")
        if self.config is None and here.is_file():
            read_settings(here)
        return super().settings_of(index_dir)


@command_class
class Builds(Calls):
    encoder: Annotated[
        str | None,
        ModelOption(help="Sentence encoder: minilm, bge-small, e5-small, ..., or a model's name or path."),
        Sets("encoder", "name"),
    ] = None
    encoder_api_base: Annotated[
        str | None,
        ModelOption(metavar="URL", help="Address of an OpenAI-compatible encoder."),
        Sets("encoder", "api_base"),
    ] = None

    def settings(self, base: Settings | None = None) -> Settings:
        settings = super().settings(base)
        if self.encoder and not self.encoder_api_base:  # the address in the settings is another encoder's
            return with_sections(settings, {"encoder": {"api_base": None}})
        return settings


AclColumn = Annotated[
    str | None,
    ColumnOption(
        "--acl-column",
        help="Labels of who may read it; in Markdown, front matter. Default: acl",
    ),
    Sets("corpus", "acl_column"),
]


@command_class
class Columns(Models):
    """Which columns of a table are what (kraq.toml, section corpus, names them too)."""

    text_column: Annotated[
        str | None,
        ColumnOption(help="Column of the text, or several with commas. Default: text, content, ..."),
        Sets("corpus", "text_column"),
    ] = None
    title_column: Annotated[
        str | None, ColumnOption(help="Column of the title. Default: title"), Sets("corpus", "title_column")
    ] = None
    id_column: Annotated[
        str | None, ColumnOption(help="Column of the id. Default: id"), Sets("corpus", "id_column")
    ] = None
    acl_column: AclColumn = None
    labels: Annotated[
        Path | None,
        ColumnOption(metavar="FILE", help="A csv with path (or id) and labels: who may read which file or folder."),
        Sets("corpus", "labels_file"),
    ] = None
    encoding: Annotated[
        str | None,
        ColumnOption(help="Encoding of files that are not UTF-8, such as cp1252, cp932, gb18030."),
        Sets("corpus", "encoding"),
    ] = None


@command_class
class QuestionFile(Models):
    """Which columns of a file of questions are what: the options win over [columns] of kraq.toml."""

    question_column: Annotated[str, QuestionOption(help="Column with the question. Default: question, query, ...")] = ""
    answer_column: Annotated[str, QuestionOption(help="Column with the answers. Default: answers, answer, ...")] = ""
    documents_column: Annotated[
        str, QuestionOption(help="Ids of the documents with the evidence. Default: supporting_ids, ...")
    ] = ""

    def columns(self) -> QuestionColumns:
        """Raises ConfigError for a settings file that cannot be read."""

        here = Path("kraq.toml")
        file = self.config or (here if here.is_file() else None)
        in_file = ColumnSettings() if file is None else read_settings(file).columns
        return QuestionColumns(
            self.question_column or in_file.question,
            self.answer_column or in_file.answers,
            self.documents_column or in_file.documents,
        )


@command_class
class Limits(Models):
    max_calls: Annotated[int | None, LimitOption(min=0, help="Most calls to models; kraq stops before one more.")] = (
        None
    )
    max_tokens: Annotated[int | None, LimitOption(min=0, help="Most tokens of all calls together.")] = None
    max_cost: Annotated[
        float | None,
        LimitOption(min=0, metavar="MONEY", help="Most money; kraq.toml holds the prices, by role."),
    ] = None

    def limits(self, settings: Settings) -> MeterLimits | None:

        if self.max_calls is self.max_tokens is self.max_cost is None:
            return None
        return MeterLimits(self.max_calls, self.max_tokens, self.max_cost, prices_of(settings))


def _list_programs(is_wanted: bool) -> None:
    """Prints what there is to choose from, with the options of each, and ends."""
    if not is_wanted:
        return

    for title, flag, specs in (("Programs", "-P", PROGRAMS), ("Retrievers", "--retriever-option", RETRIEVERS)):
        say(f"{title}; options by {flag} NAME=VALUE", style="bold")
        for spec in specs:
            is_default = " (default)" if spec.name == DEFAULT_PROGRAM else ""
            say((f"  {spec.name}  ", "cyan"), spec.help, is_default)
            for each in options_of(spec.options).values():
                default = "" if each.is_required or each.default is None else f"={each.default}"
                say((f"      {each.name}{default}  ", "dim"), each.help)
    raise typer.Exit


@command_class
class ChosenProgram:
    """A program over a retriever, by name."""

    program: Annotated[str | None, Option("--program", "-p", help="Program that answers; --programs lists them.")] = (
        None
    )
    retriever: Annotated[
        str | None,
        Option("--retriever", "-r", help="Retriever of the passages.", show_default="adaptive, or dense"),
    ] = None
    k: Annotated[int | None, Option("--k", "-k", min=1, help="Passages to answer from.")] = None
    program_option: Annotated[
        Repeated,
        Option("-P", "--program-option", metavar="NAME=VALUE", help="An option of the program; repeatable."),
    ] = None
    retriever_option: Annotated[
        Repeated,
        Option("--retriever-option", metavar="NAME=VALUE", help="An option of the retriever; repeatable."),
    ] = None
    programs: Annotated[
        bool,
        Flag(
            "--programs",
            callback=_list_programs,
            is_eager=True,
            help="List programs, retrievers and their options, and exit.",
        ),
    ] = False

    @property
    def is_default(self) -> bool:
        """Whether nobody chose anything, so that an answer that was prepared will do."""
        chosen = (self.program, self.retriever, self.k, self.program_option, self.retriever_option)
        return not any(chosen)

    def choice(self) -> ProgramChoice:
        """Raises ConfigError before anything is opened."""

        name = self.program or DEFAULT_PROGRAM
        options: dict[str, Any] = dict(words_of("--program-option", self.program_option or ()))
        if self.k is not None:
            options[passages_option(name, options)] = self.k
        found_by = words_of("--retriever-option", self.retriever_option or ())
        return choose_program(name, self.retriever, options, retriever_options=found_by)


@command_class
class Refuses:
    """A front door, which refuses what the documents do not answer."""

    no_refuse: Annotated[
        bool, Flag("--no-refuse", help="Answer even if the documents seem not to hold the answer.")
    ] = False

    def refuses(self, space: Workspace) -> bool:
        return space.refuses and not self.no_refuse
