"""Chooses a program or a retriever by name with its options, and refuses what does not go together, for nothing.

Nothing is opened, loaded or asked here, so the command line checks a whole request before it pays for anything.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dspy

from kraq_dspy.errors import ConfigError
from kraq_dspy.spec import ProgramSpec, RetrieverSpec, Word, options_of, read_options
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS

DEFAULT_PROGRAM = "traditional"
"""The default program: combined retrieval over the default retriever finds no more evidence."""
INNER = "over"
"""The option that names the program inside another one."""


@dataclass(frozen=True)
class RetrieverChoice:
    """A retriever with its options, checked."""

    spec: RetrieverSpec
    options: Any

    @property
    def changed_options(self) -> dict[str, Any]:
        """The options whose values are not the defaults."""
        changed = {}
        for field in dataclasses.fields(self.options):
            value = getattr(self.options, field.name)
            if value != field.default:
                changed[field.name] = value
        return changed

    @property
    def prepared(self) -> list[tuple[str, Any]]:
        """The names of what is to be made offline (`PREPARATIONS`), with the options that it is for."""
        return [(name, self.options) for name in self.spec.prepared]


@dataclass(frozen=True)
class ProgramChoice:
    """A program with its options, its retriever and the program inside it, checked.

    `retriever` is None for a program without one, and where the index is to choose: see `Workspace.default_retriever`.
    """

    spec: ProgramSpec
    options: Any
    retriever: RetrieverChoice | None = None
    inner: "ProgramChoice | None" = None

    @property
    def answering(self) -> "ProgramChoice":
        """The program that answers: the inner one, if there is one."""
        return self.inner.answering if self.inner else self

    @property
    def takes_retriever(self) -> bool:
        return self.answering.spec.takes == "retriever"

    @property
    def settings(self) -> tuple[str, ...]:
        """The sections of kraq.toml that it reads besides its roles."""
        return (*self.spec.settings, *(self.inner.settings if self.inner else ()))

    @property
    def role(self) -> str:
        """Whose model answers."""
        return self.answering.spec.role

    @property
    def budget(self) -> int:
        """How many passages it retrieves for a question."""
        return self.answering.spec.budget(self.answering.options)

    @property
    def calls_at_once(self) -> int:
        return self.answering.spec.calls_at_once(self.answering.options)

    @property
    def prepared(self) -> list[tuple[str, Any]]:
        """The names of what is to be made offline for all of its parts, with the options of the part that needs it."""
        own = self.spec.prepared if self.spec.needs_prepared(self.options) else ()
        part = self.inner or self.retriever
        return [(name, self.options) for name in own] + (part.prepared if part else [])

    def seconds(self, prediction: dspy.Prediction) -> Mapping[str, float]:
        """Seconds by stage, and "wall" on the clock."""
        if self.inner is not None and prediction.get("source") == "program":
            return self.inner.seconds(prediction)
        return self.spec.seconds(prediction)


def choose_retriever(name: str, options: Mapping[str, Any] | None = None) -> RetrieverChoice:
    """ "dense", or "cross-encoder:MODEL". Raises ConfigError for an unknown name, option or value."""
    values = dict(options or {})
    name, _, argument = name.partition(":")
    spec = RETRIEVERS[name]
    if argument:
        if not spec.argument:
            raise ConfigError(f"The retriever {name!r} takes nothing after a colon; found {argument!r}.")
        values[spec.argument] = Word(argument)

    choice = RetrieverChoice(spec, read_options(f"The retriever {name!r}", spec.options, values))
    over = getattr(choice.options, INNER, None)
    if over is not None and choose_retriever(over).spec is spec:
        raise ConfigError(f"The retriever {name!r} cannot wrap itself. Choose another for `over`.")
    return choice


def choose_program(
    name: str = DEFAULT_PROGRAM,
    retriever: str | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    retriever_options: Mapping[str, Any] | None = None,
    measured: bool = False,
    paper: bool = False,
) -> ProgramChoice:
    """A program over a retriever; without one, the index chooses it (with `paper`, the papers did).

    Options that the program does not have go to the program inside it, if there is one. `measured`
    sets the options for a trial. Raises ConfigError for an unknown name, option or value, and for a
    retriever that the program would not ask.
    """
    spec = PROGRAMS[name]
    values = {**(spec.measured if measured else {}), **(options or {})}
    if spec.takes == "program":
        own = {key: value for key, value in values.items() if key in options_of(spec.options)}
        outer = read_options(f"The program {name!r}", spec.options, own)
        inside = getattr(outer, INNER)
        if PROGRAMS[inside].takes == "program":
            raise ConfigError(f"The program {name!r} cannot wrap {inside!r}. Set `over` to another program.")
        others = {key: value for key, value in values.items() if key not in own}
        how: dict[str, Any] = {"retriever_options": retriever_options, "measured": measured, "paper": paper}
        inner = choose_program(inside, retriever, others, **how)
        return ProgramChoice(spec, outer, inner.retriever, inner)

    read = read_options(f"The program {name!r}", spec.options, values)
    if spec.takes == "nothing":
        if retriever is not None or retriever_options:
            raise ConfigError(f"The program {name!r} finds its own evidence; it takes no retriever.")
        return ProgramChoice(spec, read)

    if retriever is None and paper:
        retriever = spec.paper_retriever
    if retriever is None and retriever_options:
        raise ConfigError("Retriever options need a retriever name. Add --retriever NAME.")
    chosen = None if retriever is None else choose_retriever(retriever, retriever_options)
    return ProgramChoice(spec, read, chosen)


def passages_option(name: str, options: Mapping[str, Any]) -> str:
    """The option of a program, or of the one that `options` put inside it, that says how many passages it answers from.

    Raises ConfigError if there is none.
    """
    spec = PROGRAMS[name]
    if spec.takes == "program":
        return passages_option(str(options.get(INNER, options_of(spec.options)[INNER].default)), {})
    for each in options_of(spec.options).values():
        if each.counts == "passages":
            return each.name
    raise ConfigError(f"The program {name!r} is given no number of passages; its options: kraq ask --programs.")
