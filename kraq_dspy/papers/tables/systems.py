"""Reads a table's systems, programs that answer and retrievers that find, and prepares what they look up."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.about import looks_no_question_up
from kraq_dspy.indexing.prepare.preparations import PREPARATIONS, Preparation
from kraq_dspy.papers.tables.table import EvalTable, System
from kraq_dspy.programs.speculative.efficient_speculative_rag import EFFICIENT
from kraq_dspy.records import content_id
from kraq_dspy.settings import ROLES, Settings
from kraq_dspy.spec import options_of
from kraq_dspy.state import read_state
from kraq_dspy.workspace.choices import ProgramChoice, choose_program, choose_retriever

OF_THE_SYSTEM = ("state", "retriever", "retriever_options", "roles", "step_roles", "settings")
"""Options of an entry that are not the program's."""


def settings_of(system: System, settings: Settings) -> Settings:
    """The settings with the system's own sections, and its roles done by the models of the others that it names.

    Raises ConfigError, which names the system, for a section, key, value or role that is not known.
    """
    sections: Mapping[str, Mapping[str, Any]] = system.options.get("settings", {})
    try:
        for name, values in sections.items():
            section = dataclasses.replace(getattr(settings, name), **values)
            settings = dataclasses.replace(settings, **{name: section})
    except (AttributeError, TypeError, ConfigError) as error:
        raise ConfigError(f"{system.name!r}: {error}") from error

    roles: Mapping[str, str] = system.options.get("roles", {})
    step_roles: Mapping[str, str] = system.options.get("step_roles", {})
    if unknown := sorted({*roles, *roles.values(), *step_roles.values()} - set(ROLES)):
        raise ConfigError(f"{system.name!r}: there is no role {unknown[0]!r}; the roles are {', '.join(ROLES)}.")
    if not roles:
        return settings
    instead = {role: settings.role(other) for role, other in roles.items()}
    return dataclasses.replace(settings, roles={**settings.roles, **instead})


def with_equal_questions(settings: Settings, systems: Iterable[System]) -> tuple[Settings, list[str]]:
    """The settings under which sources of questions may be compared, and a note that says so.

    If one of the systems has the Random baseline's questions, or those of another generator, every
    source writes once from its own input, and kraq keeps the result: Random has no templates,
    headings or second candidates. Otherwise the settings are returned as they are.
    """
    if not any(asks_random(system) or "generator" in system.options.get("roles", {}) for system in systems):
        return settings, []

    questions = dataclasses.replace(
        settings.questions, asked_by="model", fallback=False, candidates=settings.questions.candidates or 1
    )
    note = "Every source of questions is asked about what it sees alone, and no template asks in its place."
    return dataclasses.replace(settings, questions=questions), [note]


def distinct(systems: Iterable[System], settings: Settings) -> tuple[list[tuple[System, Settings]], list[str]]:
    """The systems with their settings, and notes on those left out since they would be another one
    once more."""
    first_of: dict[str, str] = {}
    distinct_systems, notes = [], []
    for system in systems:
        own = settings_of(system, settings)
        if _looks_up_nothing(system, own):
            notes.append(f"{system.name} is left out: the variant sentences looks no stored question up.")
            continue

        key = _all_that_matters(system, own)
        if key in first_of and system.options.get("roles"):
            roles = ", ".join(system.options["roles"])
            notes.append(f"{system.name} is left out: its {roles} is the same model as that of {first_of[key]}.")
            continue
        first_of.setdefault(key, system.name)
        distinct_systems.append((system, own))
    return distinct_systems, notes


def _looks_up_nothing(system: System, settings: Settings) -> bool:
    """Whether its own questions would have no part in its answers."""
    if system.use != EFFICIENT.name or settings.instructed.kind != "sentences":
        return False
    return asks_random(system) or "generator" in system.options.get("roles", {})


def _all_that_matters(system: System, settings: Settings) -> str:
    """A text that two systems share that are the same under two names."""
    options = dict(system.options)
    for aside in ("roles", "settings"):
        options.pop(aside, None)
    roles = {role: dataclasses.asdict(settings.role(role)) for role in ROLES}
    fields = {**settings.to_dict(), "roles": roles}
    return json.dumps([system.use, options, fields], sort_keys=True)


def program_of(system: System, *, seed: int = 0, paper: bool = True) -> ProgramChoice:
    """Choose the program that an entry of a table of answers names. Where it names no retriever, it
    is that of the papers, or, in a table that is none of theirs, the index's own.

    Raises ConfigError, which names the system, for a name, an option or a value that is not known.
    """
    options = own_options(system)
    retriever, retriever_options = (system.options.get(name) for name in ("retriever", "retriever_options"))

    def choose(options: Mapping[str, Any]) -> ProgramChoice:
        return choose_program(
            system.use, retriever, options, retriever_options=retriever_options, measured=True, paper=paper
        )

    try:
        choice = choose(options)
        seeded = "seed" in options_of((choice.inner or choice).spec.options)
        choice = choose({"seed": seed, **options}) if seeded else choice
    except ConfigError as error:
        raise ConfigError(f"{system.name!r}: {error}") from error
    step_roles = system.options.get("step_roles")
    if not step_roles:
        return choice
    return dataclasses.replace(choice, spec=dataclasses.replace(choice.spec, roles={**choice.spec.roles, **step_roles}))


def require_steps(system: System, program: dspy.Module) -> None:
    """Raises ConfigError for a role that is given to a step which the program lacks."""
    steps = {name.partition(".")[0] for name, _ in program.named_predictors()}
    if unknown := sorted(set(system.options.get("step_roles", {})) - steps):
        raise ConfigError(
            f"{system.name!r}: there is no step {unknown[0]!r}; the steps are {', '.join(sorted(steps))}."
        )


def state_digests(table: EvalTable) -> dict[str, str]:
    """Hashes of the states that the systems name. Raises StateError for a file that is missing or no state."""
    return {
        system.name: content_id(json.dumps(dict(read_state(Path(system.options["state"])).predictors)))
        for system in table.systems
        if "state" in system.options
    }


def own_options(system: System) -> dict[str, Any]:
    """Take the options of an entry, without what it says of its settings, models, state and
    retriever."""
    return {name: value for name, value in system.options.items() if name not in OF_THE_SYSTEM}


def asks_random(system: System) -> bool:
    """Whether it needs the questions of the Random baseline."""
    return "random" in (system.use, system.options.get("questions"))


def needed(table: EvalTable, systems: Iterable[System]) -> list[tuple[Preparation, Any]]:
    """Return what the programs or retrievers look up, each once, with the options that it is made
    with."""
    work: dict[tuple[str, Any], Preparation] = {}
    for system in systems:
        choice = (
            choose_retriever(system.use, own_options(system))
            if table.kind == "retrievers"
            else program_of(system, paper=table.of_papers)
        )

        for name, options in choice.prepared:
            preparation = PREPARATIONS[name]
            known = {"top_n": table.precompute, "questions": getattr(options, "questions", "kraq")}
            fitting = {option: known[option] for option in options_of(preparation.options) if option in known}
            work[preparation.name, preparation.options(**fitting)] = preparation
    return [(preparation, options) for (_, options), preparation in work.items()]


def require_looked_up(table: EvalTable, settings: Settings) -> None:
    """Raises ConfigError for a table of a paper that is about q*, if nothing would look a q* up."""
    is_papers = table.as_paper is not None or any(each.startswith(("kraq-", "thesis-")) for each in table.papers)
    if table.kind != "answers" or not is_papers:
        return
    for system in table.systems:
        if looks_no_question_up(program_of(system, paper=table.of_papers).spec, settings_of(system, settings)):
            raise ConfigError(
                f"{system.name!r} is Algorithm 2, which looks the stored question nearest to the user's up, and with "
                '[instructed] kind = "sentences" there is none to look up. Say "pair" or "inbedder" in kraq.toml.'
            )
