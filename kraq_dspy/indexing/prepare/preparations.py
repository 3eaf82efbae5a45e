"""Declares what `kraq precompute` makes offline, for programs and retrievers to look up."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.prepare.graph import embed_graph
from kraq_dspy.indexing.prepare.instructed import InstructedOptions, precompute
from kraq_dspy.indexing.prepare.k2rag import build_summarised
from kraq_dspy.indexing.prepare.qa_pairs import make_qa_pairs
from kraq_dspy.indexing.prepare.raptor import build_tree, open_tree
from kraq_dspy.ports import Progress
from kraq_dspy.spec import NoOptions


@dataclass(frozen=True)
class Preparation:
    """What is made offline once and looked up. `make(space, options, progress)` makes what is missing, in an index that
    is open for writing, and returns a report.

    `command` is what a person types after `kraq precompute DIR`. What is not `required` is made while the question
    waits where it was not made before. `is_there` says whether making it again can be spared.
    """

    name: str
    help: str
    make: Callable[[Any, Any, Progress], Any]
    command: str = ""
    options: type = NoOptions
    required: bool = False
    is_there: Callable[[Any], bool] | None = None


def _has_tree(space: Any) -> bool:
    """Whether there is a tree of the passages as they are; to find its clusters again takes as long as at first."""
    try:
        open_tree(space.index, space.embedder)
    except IndexStateError:
        return False
    return True


INSTRUCTED = Preparation(
    "instructed",
    "Passages as seen from the stored questions, E(d|q).",
    lambda space, options, progress: precompute(space.index, space.instructed_embedder, options, progress),
    options=InstructedOptions,
    required=True,
)
QA_PAIRS = Preparation(
    "qa-pairs",
    "Every passage as question-answer pairs.",
    lambda space, options, progress: make_qa_pairs(space.index, space.models, progress=progress),
    "--qa-pairs",
)
GRAPH = Preparation(
    "graph",
    "Embeddings of entities and reports.",
    lambda space, options, progress: embed_graph(space.index, space.embedder, progress),
    "--graph",
)
RAPTOR = Preparation(
    "raptor",
    "A tree of summaries.",
    lambda space, options, progress: build_tree(space.index, space.embedder, space.models, progress=progress),
    "--raptor",
    required=True,
    is_there=_has_tree,
)
SUMMARISED = Preparation(
    "k2rag",
    "Every document summarised, and indexed so.",
    lambda space, options, progress: build_summarised(space.index, space.embedder, space.models, progress=progress),
    "--k2rag",
    required=True,
)

PREPARATIONS = {each.name: each for each in (INSTRUCTED, QA_PAIRS, GRAPH, RAPTOR, SUMMARISED)}
"""By name, as the declarations of programs and retrievers name them."""


def required_commands(names: Iterable[str]) -> list[str]:
    """What a person runs before a program or retriever with these preparations answers."""
    needed = (PREPARATIONS[name] for name in names)
    return [f"kraq precompute DIR {each.command}".strip() for each in needed if each.required]
