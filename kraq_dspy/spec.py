"""Declares what a program or a retriever is: its name, options, needs and roles, and how it is made.

A declaration stands beside its class. Workspace, command line, tables, optimizer and the guide's tables read these
declarations and nothing else. Another package adds its own by an entry point in the group "kraq_dspy.programs" or
"kraq_dspy.retrievers":

    [project.entry-points."kraq_dspy.programs"]
    my-rag = "my_package.specs:MY_RAG"      # a ProgramSpec named "my-rag"
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Generic, Literal

import dspy
from typing_extensions import TypeVar

from kraq_dspy._internal.options import Option as Option, Word as Word, option as option, options_of as options_of
from kraq_dspy.errors import ConfigError, did_you_mean
from kraq_dspy.ports import Retriever, Space as Space


@dataclass(frozen=True)
class NoOptions:
    """The options of what has none."""


@dataclass(frozen=True, slots=True)
class Note:
    """A line about what a prediction rests on: a `label`, and behind it a text of at most `length` characters.

    `tone` says how it is meant: "strong" leads a text, "found" leads what was found, "doubtful" says what went wrong.

    >>> Note("because ", "Her letters say so.", tone="strong").text
    'Her letters say so.'
    """

    label: str
    text: str = ""
    length: int = 160
    tone: Literal["plain", "strong", "found", "doubtful"] = "plain"


Options = TypeVar("Options", default=Any)
"""The dataclass of a program's or a retriever's options."""
Part = TypeVar("Part", default=Any)
"""What a program stands on: a `Retriever`, a `dspy.Module`, or None."""


@dataclass(frozen=True)
class RetrieverSpec(Generic[Options]):
    """A retriever, declared once. `make(space, options)` makes it from an opened index, a `Space`.

    `argument` names the option that may follow the name after a colon: "cross-encoder:MODEL". `role` is whose model its
    steps ask, if it has any. `prepared` names what `kraq precompute` makes for it. `needs_graph` says that it walks
    the graph, or the questions and reports made from it: `kraq select` tries it last.

    >>> RetrieverSpec("dense", "Passages with the nearest embeddings.", make_dense, "DenseRetriever")  # doctest: +SKIP
    """

    name: str
    help: str
    make: Callable[[Space, Options], Retriever]
    class_name: str
    options: type[Options] = NoOptions  # type: ignore[assignment]  # a default cannot depend on the variable
    argument: str = ""
    prepared: tuple[str, ...] = ()
    role: str = "rewriter"
    source: str = ""
    needs_graph: bool = False

    def __str__(self) -> str:
        """Name it as a person does: "cross-encoder:MODEL"."""
        return f"{self.name}:{self.argument.upper()}" if self.argument else self.name


@dataclass(frozen=True)
class ProgramSpec(Generic[Options, Part]):
    """A program, declared once. `make(space, part, options)` makes it from an opened index.

    - `takes` says what `part` is: a retriever, another program (whose name is in the option `over`; options that the
      outer program does not have go to the inner one), or nothing.
    - `budget` and `calls_at_once` read from the options how many passages a question gets, and how many model calls it
      has in flight.
    - `role` is whose model its steps ask; `roles` has the exceptions, by the attribute that holds the step.
    - `prepared` names what `kraq precompute` makes; `needs_prepared` says whether that is needed with these options.
    - `settings` are the sections of kraq.toml that it reads besides its roles.
    - `keys` are what its prediction has besides `answer`, `hits` and `timings`; `seconds` reads its timings.
    - `notes` say in lines what a prediction rests on, besides its answer and its passages; without them, the `keys` are
      shown.
    - `measured` are options that hold if it is tried and not used. `paper_retriever` is what the papers used: the
      tables keep it, while people get the best one that the index allows.

    >>> ProgramSpec("quoting", "Answers with a quotation.", make, "QuotingRAG", QuotingOptions)  # doctest: +SKIP
    """

    name: str
    help: str
    make: Callable[[Space, Part, Options], dspy.Module]
    class_name: str
    options: type[Options] = NoOptions  # type: ignore[assignment]  # a default cannot depend on the variable
    takes: Literal["retriever", "program", "nothing"] = "retriever"
    prepared: tuple[str, ...] = ()
    needs_prepared: Callable[[Options], bool] = lambda options: True
    role: str = "answerer"
    roles: Mapping[str, str] = field(default_factory=dict)
    budget: Callable[[Options], int] = attrgetter("k")
    calls_at_once: Callable[[Options], int] = lambda options: 1
    settings: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    seconds: Callable[[dspy.Prediction], Mapping[str, float]] = lambda prediction: dict(prediction.get("timings") or {})
    notes: Callable[[dspy.Prediction], Iterable[Note]] | None = None
    measured: Mapping[str, Any] = field(default_factory=dict)
    paper_retriever: str = "dense"
    source: str = ""


def read_options(owner: str, kind: Any, values: Mapping[str, Any]) -> Any:
    """An instance of the dataclass `kind` with the given values, checked.

    Raises ConfigError for an unknown name, a value of another type or out of its range, and a required one that lacks.
    `owner` begins the message: "The program 'combined'".
    """
    known: Mapping[str, Option] = options_of(kind)
    for name in values:
        if name not in known:
            has = f"its options: {', '.join(known)}" if known else "it has none"
            raise ConfigError(f"{owner} has no option {name!r}{did_you_mean(name, known)}; {has}.")

    for each in known.values():
        if each.is_required and each.name not in values:
            raise ConfigError(f"{owner} needs the option {each.name!r}: {each.help}")
    return kind(**{name: known[name].read(owner, value) for name, value in values.items()})


def words_of(flag: str, assignments: Iterable[str]) -> dict[str, Word]:
    """["pagerank=0.5"] as {"pagerank": "0.5"}. Raises ConfigError, which names the `flag`, for what is no
    NAME=VALUE."""
    words = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator or not name.strip():
            raise ConfigError(f"{flag} is {assignment!r}; expected NAME=VALUE, such as k=10.")
        words[name.strip().replace("-", "_")] = Word(value)
    return words
