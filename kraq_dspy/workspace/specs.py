"""Declares what a program or a retriever is: its name, options, needs and roles, how it is made and how it is shown.

Workspace, command line, tables, optimizer and the README's tables read these declarations and nothing else. Another
package adds its own by an entry point in the group "kraq_dspy.programs" or "kraq_dspy.retrievers":

    [project.entry-points."kraq_dspy.programs"]
    my-rag = "my_package.specs:MY_RAG"      # a ProgramSpec named "my-rag"
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from kraq_dspy.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    import dspy
    from rich.text import Text

    from kraq_dspy.build.index.estimate import Estimate
    from kraq_dspy.ports import Progress, Retriever
    from kraq_dspy.workspace.workspace import Workspace

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NoOptions:
    """The options of what has none."""


@dataclass(frozen=True)
class Preparation:
    """What is made offline once and looked up. `make(space, options, progress)` makes what is missing, in an index that
    is open for writing, and returns a report.

    `command` is what a person types after `kraq precompute DIR`. What is not `required` is made while the question
    waits where it was not made before. `is_there` says whether making it again can be spared. `estimate` says what it
    will take, without asking a model: an `indexing.estimate.Estimate`.
    """

    name: str
    help: str
    make: "Callable[[Workspace, Any, Progress], Any]"
    command: str = ""
    options: type = NoOptions
    required: bool = False
    is_there: "Callable[[Workspace], bool] | None" = None
    estimate: "Callable[[Workspace, Progress], Estimate] | None" = None


@dataclass(frozen=True)
class RetrieverSpec:
    """A retriever, declared once. `make(space, options)` makes it from an opened Workspace.

    `argument` names the option that may follow the name after a colon: "cross-encoder:MODEL". `role` is whose model its
    steps ask, where it has any.
    """

    name: str
    help: str
    make: "Callable[[Workspace, Any], Retriever]"
    class_name: str
    options: type = NoOptions
    argument: str = ""
    prepared: tuple[Preparation, ...] = ()
    role: str = "rewriter"
    source: str = ""

    def __str__(self) -> str:
        """As a person names it: "cross-encoder:MODEL"."""
        return f"{self.name}:{self.argument.upper()}" if self.argument else self.name


def wall_and_stages(prediction: "dspy.Prediction") -> Mapping[str, float]:
    """Seconds by stage with "wall", from a prediction's `timings`; empty for a program that measures nothing."""
    return dict(prediction.get("timings") or {})


def no_lines(prediction: "dspy.Prediction") -> "Iterator[Text]":
    """Nothing besides the answer and its evidence."""
    return iter(())


def always(options: Any) -> bool:
    return True


def once(options: Any) -> int:
    return 1


@dataclass(frozen=True)
class ProgramSpec:
    """A program, declared once. `make(space, part, options)` makes it from an opened Workspace.

    - `takes` says what `part` is: a retriever, another program (whose name is in the option `over`; options that the
      outer program does not have go to the inner one), or nothing.
    - `budget` and `calls_at_once` read from the options how many passages a question gets, and how many model calls it
      has in flight; `calls` is the most that it makes, where that is not one for each predictor.
    - `role` is whose model its steps ask; `roles` has the exceptions, by the attribute that holds the step.
    - `prepared` is made offline; `needs_prepared` says whether it is with these options.
    - `settings` are the sections of kraq.toml that it reads besides its roles.
    - `keys` are what its prediction has besides `answer`, `hits` and `timings`; `lines` is how they read in a terminal;
      `seconds` reads its timings.
    - `measured` are options that hold where it is tried and not used. `paper_retriever` is what the papers used: the
      tables keep it, while people get the best one that the index allows.
    """

    name: str
    help: str
    make: "Callable[[Workspace, Any, Any], dspy.Module]"
    class_name: str
    options: type = NoOptions
    takes: Literal["retriever", "program", "nothing"] = "retriever"
    prepared: tuple[Preparation, ...] = ()
    needs_prepared: Callable[[Any], bool] = always
    role: str = "answerer"
    roles: Mapping[str, str] = field(default_factory=dict)
    budget: Callable[[Any], int] = attrgetter("k")
    calls_at_once: Callable[[Any], int] = once
    calls: Callable[[Any], int] | None = None
    settings: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    lines: "Callable[[dspy.Prediction], Iterable[Text]]" = no_lines
    seconds: "Callable[[dspy.Prediction], Mapping[str, float]]" = wall_and_stages
    measured: Mapping[str, Any] = field(default_factory=dict)
    paper_retriever: str = "dense"
    source: str = ""


@dataclass(frozen=True)
class RetrieverChoice:
    """A retriever with its options, checked; nothing is opened or loaded yet."""

    spec: RetrieverSpec
    options: Any

    @property
    def prepared(self) -> list[tuple[Preparation, Any]]:
        """What is to be made offline, with the options that it is for."""
        return [(preparation, self.options) for preparation in self.spec.prepared]


@dataclass(frozen=True)
class ProgramChoice:
    """A program with its options, its retriever and the program inside it, checked; nothing is opened or loaded yet.

    `retriever` is None for a program without one, and where the index is to choose: see `Workspace.default_retriever`.
    """

    spec: ProgramSpec
    options: Any
    retriever: RetrieverChoice | None = None
    inner: "ProgramChoice | None" = None

    @property
    def takes_retriever(self) -> bool:
        return self.inner.takes_retriever if self.inner else self.spec.takes == "retriever"

    @property
    def settings(self) -> tuple[str, ...]:
        """The sections of kraq.toml that it reads besides its roles."""
        return (*self.spec.settings, *(self.inner.settings if self.inner else ()))

    @property
    def role(self) -> str:
        """Whose model answers."""
        return self.inner.role if self.inner else self.spec.role

    @property
    def budget(self) -> int:
        """How many passages it retrieves for a question."""
        return self.inner.budget if self.inner else self.spec.budget(self.options)

    @property
    def calls_at_once(self) -> int:
        return self.inner.calls_at_once if self.inner else self.spec.calls_at_once(self.options)

    @property
    def prepared(self) -> list[tuple[Preparation, Any]]:
        """What is to be made offline for all of its parts, with the options of the part that it is for."""
        own = self.spec.prepared if self.spec.needs_prepared(self.options) else ()
        part = self.inner or self.retriever
        return [(each, self.options) for each in own] + (part.prepared if part else [])

    def most_calls(self, program: "dspy.Module") -> int:
        """The most model calls that it makes for one question."""
        return self.spec.calls(self.options) if self.spec.calls else len(program.predictors())

    def lines(self, prediction: "dspy.Prediction") -> "Iterator[Text]":
        """What is shown of the prediction besides its answer and its evidence."""
        yield from self.spec.lines(prediction)
        if self.inner is not None and prediction.get("source") == "program":
            yield from self.inner.lines(prediction)

    def seconds(self, prediction: "dspy.Prediction") -> Mapping[str, float]:
        """Seconds by stage, and "wall" on the clock."""
        if self.inner is not None and prediction.get("source") == "program":
            return self.inner.seconds(prediction)
        return self.spec.seconds(prediction)


Spec = TypeVar("Spec", bound=ProgramSpec | RetrieverSpec)


class Registry(Generic[Spec]):
    """The specs by name: this library's own, then those that other packages registered as entry points of `group`."""

    def __init__(self, kind: type[Spec], what: str, group: str, own: Sequence[Spec]) -> None:
        self.kind = kind
        self.what = what
        self.group = group
        self.own = {spec.name: spec for spec in own}

    def __getitem__(self, name: str) -> Spec:
        """Raises ConfigError for a name that nobody declared, and for an entry point that cannot be loaded."""
        if name in self.own:
            return self.own[name]
        others = self._others()
        if name not in others:
            known = [*self.own, *others]
            raise ConfigError(
                f"There is no {self.what} {name!r}{did_you_mean(name, known)}; there are: {', '.join(known)}."
            )
        return self._loaded(others[name])

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._others()

    def __iter__(self) -> Iterator[Spec]:
        """All that can be loaded; the log says which cannot."""
        yield from self.own.values()
        for entry in self._others().values():
            try:
                yield self._loaded(entry)
            except ConfigError as error:
                logger.warning("%s", error)

    def names(self) -> list[str]:
        return [*self.own, *self._others()]

    def _others(self) -> dict[str, EntryPoint]:
        others: dict[str, EntryPoint] = {}
        for entry in sorted(entry_points(group=self.group), key=lambda entry: entry.name):
            if entry.name in self.own or (entry.name in others and others[entry.name].value != entry.value):
                logger.warning(
                    "The %s %r of %s is left out: the name is taken.", self.what, entry.name, _package(entry)
                )
            else:
                others[entry.name] = entry
        return others

    def _loaded(self, entry: EntryPoint) -> Spec:
        what = f"The {self.what} {entry.name!r} of {_package(entry)}"
        try:
            spec = entry.load()
        except Exception as error:  # whatever another package's import raises
            raise ConfigError(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error
        if not isinstance(spec, self.kind) or spec.name != entry.name:
            raise ConfigError(f"{what} is {spec!r:.200}; expected a {self.kind.__name__} named {entry.name!r}.")
        return spec


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name!r}" if entry.dist is not None else f"{entry.value!r}"
