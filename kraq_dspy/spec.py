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
    """The options of a program or retriever without options."""


@dataclass(frozen=True, slots=True)
class Note:
    """A line below an answer that says what the answer rests on.

    Args:
        label: the beginning of the line.
        text: the rest of the line.
        length: the most characters of `text`.
        tone: how to print it: "plain", "strong" for a text, "found" for something found, "doubtful" for a
            failure.

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
    """The declaration of a retriever. Everything that lists retrievers reads it.

    Args:
        name: the name, as in `--retriever NAME`.
        help: what the retriever finds, in a sentence.
        make: makes the retriever: `make(space, options)`, where `space` is an opened index.
        class_name: the name of the retriever's class.
        options: the dataclass of the retriever's options.
        argument: the option that may follow the name after a colon, as in "cross-encoder:MODEL".
        prepared: what `kraq precompute` must have made.
        role: the role whose model the retriever calls; "" if it calls no model.
        source: the paper behind the retriever.
        needs_graph: whether the retriever needs the graph, questions or summaries. `kraq select` tries such
            retrievers last.

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
    """The declaration of a program. Everything that lists programs reads it.

    Args:
        name: the name, as in `--program NAME`.
        help: what the program does, in a sentence.
        make: makes the program: `make(space, part, options)`, where `space` is an opened index.
        class_name: the name of the program's class.
        options: the dataclass of the program's options.
        takes: what `part` is: "retriever", "program" or "nothing". If `part` is a program, the option `over` names
            this program. The program in `part` gets all options that are not in `options`.
        prepared: what `kraq precompute` makes for the program.
        needs_prepared: reads from the options whether the program needs `prepared`.
        role: the role whose model the steps call.
        roles: for each step that calls the model of another role: the step's attribute in the program, and that role.
        budget: reads the number of passages of a question from the options.
        calls_at_once: reads the number of concurrent model calls from the options.
        settings: sections of kraq.toml that the program reads, besides roles.
        keys: keys of the prediction besides `answer`, `hits` and `timings`.
        seconds: reads the seconds by stage from a prediction.
        notes: makes lines that say what a prediction rests on. Without it, `keys` are shown.
        measured: options to measure the program with, if they differ from the defaults.
        paper_retriever: the retriever in the papers' tables. Otherwise the program uses the default retriever.
        source: the paper behind the program.

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
