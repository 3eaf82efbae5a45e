"""Declares what `kraq precompute` makes offline, for programs and retrievers to look up."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.prepare import graph, instructed, k2rag, qa_pairs, raptor
from kraq_dspy.indexing.prepare.k2rag import MakePart
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, InstructedEmbedder, Progress
from kraq_dspy.spec import NoOptions


class Workbench(Protocol):
    """What preparations are made with: an index that is open for writing, its encoders and its models; a
    `Workspace`."""

    @property
    def index(self) -> Index: ...

    @property
    def embedder(self) -> Embedder: ...

    @property
    def instructed_embedder(self) -> InstructedEmbedder: ...

    @property
    def models(self) -> LanguageModels: ...


@dataclass(frozen=True)
class Preparation:
    """What is made offline once and looked up. `make(space, options, progress)` makes what is missing, in an index that
    is open for writing, and returns a report.

    `carry(whole, view, embedder, make_part)` gives a view of an index what it may have of this: what was made of its
    documents alone. What is not `required` is made while
    the question waits if it was not made before. `is_there` says whether making it again can be spared.
    """

    name: str
    help: str
    make: Callable[[Workbench, Any, Progress], Any]
    carry: Callable[[Index, Index, Embedder, MakePart], None]
    options: type = NoOptions
    required: bool = False
    is_there: Callable[[Workbench], bool] | None = None


def _has_tree(space: Workbench) -> bool:
    """Whether there is a tree of the passages as they are; to find its clusters again takes as long as at first."""
    try:
        raptor.open_tree(space.index, space.embedder)
    except IndexStateError:
        return False
    return True


INSTRUCTED = Preparation(
    "instructed",
    "Passages as seen from the stored questions, E(d|q).",
    lambda space, options, progress: instructed.precompute(space.index, space.instructed_embedder, options, progress),
    lambda whole, view, embedder, make_part: instructed.carry(whole, view),
    options=instructed.InstructedOptions,
    required=True,
)
QA_PAIRS = Preparation(
    "qa-pairs",
    "Every passage as question-answer pairs.",
    lambda space, options, progress: qa_pairs.make_qa_pairs(space.index, space.models, progress=progress),
    lambda whole, view, embedder, make_part: qa_pairs.carry(whole, view),
)
GRAPH = Preparation(
    "graph",
    "Embeddings of entities and summaries.",
    lambda space, options, progress: graph.embed_graph(space.index, space.embedder, progress),
    lambda whole, view, embedder, make_part: graph.carry(whole, view),
)
RAPTOR = Preparation(
    "raptor",
    "A tree of summaries.",
    lambda space, options, progress: raptor.build_tree(space.index, space.embedder, space.models, progress=progress),
    lambda whole, view, embedder, make_part: raptor.carry(whole, view, embedder),
    required=True,
    is_there=_has_tree,
)
SUMMARISED = Preparation(
    "k2rag",
    "Every document summarised, and indexed so.",
    lambda space, options, progress: k2rag.build_summarised(
        space.index, space.embedder, space.models, progress=progress
    ),
    k2rag.carry,
    required=True,
)

PREPARATIONS = {each.name: each for each in (INSTRUCTED, QA_PAIRS, GRAPH, RAPTOR, SUMMARISED)}
"""By name, as the declarations of programs and retrievers name them."""


def required_commands(names: Iterable[str]) -> list[str]:
    """Return what a person runs before a program or retriever with these preparations answers."""
    needed = (PREPARATIONS[name] for name in names)
    return [f"kraq precompute DIR {each.name}" for each in needed if each.required]
