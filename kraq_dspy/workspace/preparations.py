"""Declares what `kraq precompute` makes offline, for programs and retrievers to look up."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kraq_dspy.errors import IndexStateError
from kraq_dspy.programs.shared.options import option
from kraq_dspy.workspace.specs import Preparation

if TYPE_CHECKING:
    from kraq_dspy.build.index.estimate import Estimate
    from kraq_dspy.ports import Progress
    from kraq_dspy.workspace.workspace import Workspace


@dataclass(frozen=True)
class InstructedOptions:
    """What is embedded as seen from which questions."""

    top_n: int | None = option(100, "Passages for each question; none for all.", least=1)
    int8: bool = option(False, "Half the size of float16, a little less exact.")
    questions: Literal["kraq", "random", "all"] = option(
        "kraq", "Questions to do it for: kraq, random (the papers' baseline) or all.", flag="--source"
    )


def _instructed(space: "Workspace", options: InstructedOptions, progress: "Progress") -> Any:
    from kraq_dspy.build.prepare.speculative import precomputation

    with precomputation(space.index, space.models.settings, options) as work:
        return work.run(progress)


def _qa_pairs(space: "Workspace", options: Any, progress: "Progress") -> Any:
    from kraq_dspy.build.prepare.qa_pairs import make_qa_pairs

    return make_qa_pairs(space.index, space.models, progress=progress)


def _estimated_pairs(space: "Workspace", progress: "Progress") -> "Estimate":
    from kraq_dspy.build.prepare.qa_pairs import estimate_qa_pairs

    return estimate_qa_pairs(space.index, space.models.settings, progress=progress)


def _graph(space: "Workspace", options: Any, progress: "Progress") -> Any:
    from kraq_dspy.build.prepare.graph import embed_graph

    return embed_graph(space.index, space.embedder, progress)


def _tree(space: "Workspace", options: Any, progress: "Progress") -> Any:
    from kraq_dspy.build.prepare.raptor import build_tree

    return build_tree(space.index, space.embedder, space.models, progress=progress)


def _has_tree(space: "Workspace") -> bool:
    """Whether there is a tree of the passages as they are; to find its clusters again takes as long as at first."""
    from kraq_dspy.build.prepare.raptor import open_tree

    try:
        open_tree(space.index, space.embedder)
    except IndexStateError:
        return False
    return True


def _summarised(space: "Workspace", options: Any, progress: "Progress") -> Any:
    from kraq_dspy.build.prepare.k2rag import build_summarised

    return build_summarised(space.index, space.embedder, space.models, progress=progress)


INSTRUCTED = Preparation(
    "instructed",
    "Passages embedded as seen from the stored questions.",
    _instructed,
    options=InstructedOptions,
    required=True,
)
QA_PAIRS = Preparation(
    "qa-pairs", "Every passage as question-answer pairs.", _qa_pairs, "--qa-pairs", estimate=_estimated_pairs
)
GRAPH = Preparation("graph", "Embeddings of entities and reports.", _graph, "--graph")
RAPTOR = Preparation("raptor", "A tree of summaries.", _tree, "--raptor", required=True, is_there=_has_tree)
SUMMARISED = Preparation("k2rag", "Every document summarised, and indexed so.", _summarised, "--k2rag", required=True)

PREPARATIONS = (INSTRUCTED, QA_PAIRS, GRAPH, RAPTOR, SUMMARISED)
