"""Makes programs and retrievers by name over an opened index."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy.asset.store.index import Index
from kraq_dspy.models.lms.roles import fill_in
from kraq_dspy.ports import Retriever
from kraq_dspy.records import Entity
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.hits import have_looked_at, named_for_agents
from kraq_dspy.state import apply_state, read_state
from kraq_dspy.workspace.checking import ReadableHits
from kraq_dspy.workspace.choices import (
    DEFAULT_PROGRAM,
    ProgramChoice,
    RetrieverChoice,
    choose_program,
    choose_retriever,
)
from kraq_dspy.workspace.opening import OpenedIndex


class ProgramMaker(OpenedIndex):
    """An opened index that makes programs and retrievers, by name or as they were chosen before."""

    @cached_property
    def check(self) -> ReadableHits | None:
        """The second check of hits; None if the scope is the whole index."""
        return None if self.part is None else ReadableHits(self, self.part.document_ids)

    @property
    def default_retriever(self) -> str:
        """The retriever of the section [ask] of the settings; without one, that of `default_of`."""
        return self.models.settings.ask.retriever or default_of(self.index)

    def retriever(self, name: str | None = None, **options: Any) -> Retriever:
        """Make a retriever by its name in RETRIEVERS, or "cross-encoder:MODEL", a hub name or a
        folder; `default_retriever` without one.

        Raises ConfigError for an unknown name, option or value, IndexStateError for what has to be prepared first,
        ModelError for a cross-encoder that is not there.
        """
        return self.make_retriever(choose_retriever(name or self.default_retriever, options))

    def program(
        self,
        name: str = DEFAULT_PROGRAM,
        retriever: str | None = None,
        *,
        state: str | Path | None = None,
        retriever_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> dspy.Module:
        """Make a program by its name in PROGRAMS, over a retriever of RETRIEVERS; over
        `default_retriever` without one.

        `options` are those of the program (`k=10`); "qa-search" takes `over`, the name of the program behind it, and
        hands on what is not its own. `state` is a file of `kraq optimize`, for the program or one of its steps. Raises
        ConfigError for an unknown name, option or value, IndexStateError for what has to be prepared first, StateError
        for a state that does not fit.

        Each step calls its own model if it has one (`set_lm`), otherwise that of `dspy.context` or
        `dspy.configure`, otherwise that of its role in kraq.toml.
        """
        return self.make_program(
            choose_program(name, retriever, options, retriever_options=retriever_options), state=state
        )

    def make_retriever(self, choice: RetrieverChoice) -> Retriever:
        """The retriever of a choice, whose steps, if it has any, ask the model of its role."""
        made = choice.spec.make(self, choice.options)
        retrieve = named_for_agents(made, choice.spec.name, choice.spec.help, choice.changed_options)
        if isinstance(retrieve, dspy.Module):
            fill_in(retrieve, self.models, choice.spec.role)
        if self.check is not None:
            retrieve = as_retriever(retrieve)
            setattr(retrieve, "check", self.check)  # noqa: B010 (a port has no such attribute; ours have)
        return retrieve

    def make_program(self, choice: ProgramChoice, *, state: str | Path | None = None) -> dspy.Module:
        """The program of a choice, with a state of `kraq optimize`; without a retriever, over the index's default."""
        part: Retriever | dspy.Module | None = None
        if choice.inner is not None:
            part = self.make_program(choice.inner)
        elif choice.takes_retriever:
            part = self.make_retriever(choice.retriever) if choice.retriever else self.retriever()

        program = choice.spec.make(self, part, choice.options)
        if self.check is not None:
            have_looked_at(program, self.check)
        self.require_readable_states()
        fill_in(program, self.models, choice.spec.role, choice.spec.roles)
        if state is not None:
            saved = read_state(Path(state))
            self.require_readable(saved, Path(state))
            apply_state(program, saved, source=Path(state).name)
        return program


def default_of(index: Index) -> str:
    """The retriever of an index if none is named: "adaptive", which needs a graph, or "dense" without one."""
    return "adaptive" if index.count(Entity) else "dense"
