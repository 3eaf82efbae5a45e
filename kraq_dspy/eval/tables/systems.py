"""Reads a table's systems, programs that answer and retrievers that find, and prepares what they look up."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy.config import Settings
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.latency import TOTAL, Timings
from kraq_dspy.eval.tables.table import System, Table
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.programs.options import options_of
from kraq_dspy.programs.state import read_state
from kraq_dspy.records import content_id
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program, choose_retriever
from kraq_dspy.workspace.specs import Preparation, ProgramChoice

_OF_THE_SYSTEM = ("state", "retriever", "retriever_options")
"""Options of an entry that are not the program's."""


def program_of(system: System, *, seed: int = 0) -> ProgramChoice:
    """What an entry of a table of answers names; without a retriever, over that of the papers.

    Raises ConfigError, which names the system, for a name, an option or a value that is not known.
    """
    options = {name: value for name, value in system.options.items() if name not in _OF_THE_SYSTEM}
    retriever, retriever_options = (system.options.get(name) for name in ("retriever", "retriever_options"))

    def choose(options: Mapping[str, Any]) -> ProgramChoice:
        return choose_program(
            system.use, retriever, options, retriever_options=retriever_options, measured=True, paper=True
        )

    try:
        choice = choose(options)
        seeded = "seed" in options_of((choice.inner or choice).spec.options)
        return choose({"seed": seed, **options}) if seeded else choice
    except ConfigError as error:
        raise ConfigError(f"{system.name!r}: {error}") from error


def make_program(space: Workspace, system: System, choice: ProgramChoice) -> dspy.Module:
    """Its option `state` names a file of `kraq optimize`. Raises StateError for a state that does not fit."""
    program = space.make_program(choice)
    if "state" in system.options:
        space.load_state(program, system.options["state"])
    return program


def state_digests(table: Table) -> dict[str, str]:
    """Hashes of the states that the systems name. Raises StateError for a file that is missing or no state."""
    return {
        system.name: content_id(json.dumps(dict(read_state(Path(system.options["state"])).predictors)))
        for system in table.systems
        if "state" in system.options
    }


def needed(table: Table) -> list[tuple[Preparation, Any]]:
    """What the programs or retrievers of a table look up, each once, with the options that it is made with."""
    work: dict[tuple[str, Any], Preparation] = {}
    for system in table.systems:
        choice = choose_retriever(system.use, system.options) if table.kind == "retrievers" else program_of(system)
        for preparation, options in choice.prepared:
            known = {"top_n": table.precompute, "questions": getattr(options, "questions", "kraq")}
            fitting = {name: known[name] for name in options_of(preparation.options) if name in known}
            work[preparation.name, preparation.options(**fitting)] = preparation
    return [(preparation, options) for (_, options), preparation in work.items()]


def prepare(
    path: Path,
    work: Iterable[tuple[Preparation, Any]],
    settings: Settings,
    embedder: Embedder,
    models: LanguageModels | None,
    progress: Progress,
) -> None:
    """Make what is not there yet, in the index at `path`."""
    with Workspace.open(path, settings=settings, embedder=embedder, models=models, write=True) as space:
        for preparation, options in work:
            if preparation.is_there is None or not preparation.is_there(space):
                preparation.make(space, options, progress)


def timings_of(choice: ProgramChoice, prediction: dspy.Prediction) -> Timings:
    """Seconds by stage, and "total" on the clock; empty for a program that measures nothing."""
    seconds: Mapping[str, float] = choice.seconds(prediction)
    return {TOTAL if stage == "wall" else stage: time for stage, time in seconds.items()}
