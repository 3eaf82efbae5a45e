"""A table's systems over an index: programs that answer, retrievers that find."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy.catalogue.search import QASearch
from kraq_dspy.config import Settings
from kraq_dspy.errors import ConfigError, IndexStateError
from kraq_dspy.eval.latency import TOTAL, Timings
from kraq_dspy.eval.tables.table import System, Table
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress, Retriever
from kraq_dspy.programs.combined_retrieve_rag import CombinedRetrieveRAG
from kraq_dspy.programs.retrievers import CombinedRetriever
from kraq_dspy.programs.state import load_state, read_state
from kraq_dspy.records import content_id
from kraq_dspy.stores.index import Index
from kraq_dspy.workspace import Workspace

SPECULATIVE = ("speculative", "efficient")
LOOK_UP = {"qa-rag", "raptor", "raptor-traversal", "graph-local", "graph-global"}
"""Programs and retrievers over what is made offline once."""


def make_program(space: Workspace, system: System, *, seed: int = 0) -> dspy.Module:
    """The program of an entry of a table of answers; its option `state` names a file of `kraq optimize`.

    Raises ConfigError for a name or an option that is not known, StateError for a state that does not fit.
    """
    options = dict(system.options)
    state = options.pop("state", None)
    program = _program(space, system, options, seed)
    if state is not None:
        load_state(program, Path(state), embedder=space.embedder)
    return program


def state_digests(table: Table) -> dict[str, str]:
    """Hashes of the states that the systems name. Raises StateError for a file that is missing or no state."""
    return {
        system.name: content_id(json.dumps(dict(read_state(Path(system.options["state"])).predictors)))
        for system in table.systems
        if "state" in system.options
    }


def _program(space: Workspace, system: System, options: dict[str, Any], seed: int) -> dspy.Module:
    retriever = options.pop("retriever", "dense")
    source = options.pop("questions", "kraq")
    if system.use in SPECULATIVE:
        return _speculative(space, system.use, retriever, source, {"seed": seed, **options}, system.name)
    if system.use == "qa-search":
        options.setdefault("collect", False)  # a measurement leaves the index as it is
    if source == "kraq":
        return space.program(system.use, retriever, **options)
    if system.use != "combined":
        raise ConfigError(f"{system.name!r}: only combined and efficient take `questions`.")
    try:
        program: dspy.Module = CombinedRetrieveRAG(space.retriever(retriever), space.questions(source), **options)
    except TypeError as error:
        raise ConfigError(f"{system.name!r}: {error}") from error
    program.set_lm(space.models["answerer"])
    return program


def make_retriever(space: Workspace, system: System) -> Retriever:
    """The retriever of an entry of a table of retrievers. Raises ConfigError."""
    if not system.options:
        return space.retriever(system.use)
    if system.use != "combined":
        raise ConfigError(f"{system.name!r}: the retriever {system.use!r} takes no options.")
    options = dict(system.options)
    over, source = options.pop("retriever", "dense"), options.pop("questions", "kraq")
    try:
        return CombinedRetriever(space.retriever(over), space.questions(source), **options)
    except TypeError as error:
        raise ConfigError(f"{system.name!r}: {error}") from error


def calls_at_once(program: dspy.Module) -> int:
    """How many model calls the program has in flight for one question."""
    return max(1, int(getattr(program, "m", 1)))


def budget_of(program: dspy.Module, system: System) -> int:
    """How many passages the program retrieves for a question."""
    if isinstance(program, QASearch):
        return budget_of(program.program, dataclasses.replace(system, use=system.options.get("over", "combined")))
    if system.use in SPECULATIVE:
        return int(program.n)
    return int(program.k)


def prepare_speculation(index: Index, table: Table, settings: Settings, progress: Progress) -> None:
    """Stores E(d|q) for the table's efficient systems, where it is not stored yet. The index is open for writing."""
    from kraq_dspy.workspace.speculative import make_precomputation  # brings torch

    for source in sorted({s.options.get("questions", "kraq") for s in table.systems if s.use == "efficient"}):
        make_precomputation(index, settings, top_n=table.precompute, source=source).run(progress)


def parts_of(table: Table) -> set[str]:
    """The names of the programs and retrievers that the table uses."""
    named = ((system.use, system.options.get("retriever"), system.options.get("over")) for system in table.systems)
    return {name for names in named for name in names if name}


def prepare_lookups(index: Index, table: Table, embedder: Embedder, models: LanguageModels, progress: Progress) -> None:
    """What the table's systems look up and the index lacks: question-answer pairs, a tree of summaries, embeddings of
    the graph. The index is open for writing."""
    from kraq_dspy.prepare.graph import embed_graph
    from kraq_dspy.prepare.qa_pairs import make_qa_pairs
    from kraq_dspy.prepare.raptor import build_tree

    used = parts_of(table)
    if any(system.use == "qa-rag" and system.options.get("variant") != "v" for system in table.systems):
        make_qa_pairs(index, models, progress=progress)
    if used & {"raptor", "raptor-traversal"} and not _has_tree(index, embedder):
        build_tree(index, embedder, models, progress=progress)
    if used & {"graph-local", "graph-global"}:
        embed_graph(index, embedder, progress)


def prepare_summarised(index: Index, embedder: Embedder, models: LanguageModels, progress: Progress) -> None:
    """K2RAG's summarised corpus, where it is not stored yet. The index is open for writing."""
    from kraq_dspy.prepare.k2rag import build_summarised

    build_summarised(index, embedder, models, progress=progress)


def _has_tree(index: Index, embedder: Embedder) -> bool:
    """Whether there is a tree of the passages as they are; to find its clusters again takes as long as at first."""
    from kraq_dspy.prepare.raptor import open_tree

    try:
        open_tree(index, embedder)
    except IndexStateError:
        return False
    return True


def timings_of(prediction: dspy.Prediction) -> Timings:
    """Seconds by stage, and "total" on the clock; empty for a program that measures nothing."""
    timings = prediction.get("timings")
    if timings is None:
        return {}
    if dataclasses.is_dataclass(timings) and not isinstance(timings, type):
        seconds = dataclasses.asdict(timings)
        seconds.pop("parallel_model", None)  # what the report makes of the stages itself
    elif isinstance(timings, Mapping):
        seconds = dict(timings)
    else:
        return {}
    wall = seconds.pop("wall", None)
    return seconds if wall is None else {**seconds, TOTAL: wall}


def _speculative(
    space: Workspace, use: str, retriever: str, source: str, options: dict[str, Any], name: str
) -> dspy.Module:
    from kraq_dspy.workspace.speculative import make_efficient, make_speculative  # brings torch

    try:
        if use == "speculative":
            return make_speculative(space.retriever(retriever), space.models, **options)
        return make_efficient(space.index, space.retriever(retriever), space.questions(source), space.models, **options)
    except TypeError as error:
        raise ConfigError(f"{name!r}: {error}") from error
