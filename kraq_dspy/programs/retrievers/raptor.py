"""Makes summaries of clusters of passages, and retrieves both together: RAPTOR (Sarthi et al., 2024)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import dspy
import numpy as np

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.ports import ChunkSource, Embedder, NearestTexts, Vectors, VectorStore
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, Retrieving, best_first, matches
from kraq_dspy.programs.shared.spec import NoOptions, RetrieverSpec, Space
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import check_steps, prediction
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.signatures import SummarizePassages

MODES = ("collapsed", "traversal")


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A summary of its `child_ids`: chunks at `level` 1, summaries of the level below above that."""

    id: str
    level: int
    child_ids: tuple[str, ...]
    text: str
    n_tokens: int


class SummaryTree:
    """The summaries by id, and who stands under whom. A child may have several parents: clusters are soft."""

    def __init__(self, chunk_ids: Sequence[str], nodes: Sequence[TreeNode]) -> None:
        self.chunk_ids = frozenset(chunk_ids)
        self.nodes: Mapping[str, TreeNode] = {node.id: node for node in nodes}

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """What nothing stands over, sorted: the summaries of the top, and what was left out of every cluster."""
        covered = {child for node in self.nodes.values() for child in node.child_ids}
        return tuple(sorted((self.nodes.keys() | self.chunk_ids) - covered))

    @cached_property
    def leaves(self) -> Mapping[str, frozenset[str]]:
        """The chunks under each summary, by its id."""
        leaves: dict[str, frozenset[str]] = {}
        for node in sorted(self.nodes.values(), key=lambda node: node.level):
            leaves[node.id] = frozenset(
                leaf for child in node.child_ids for leaf in leaves.get(child, frozenset((child,)))
            )
        return leaves


class NodeVectors(NearestTexts, Protocol):
    """Finds summaries by their embeddings, and hands these out."""

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """float32 `[n_ids, dimension]` in the order of `ids`. Raises UnknownRecordError."""


@dataclass(eq=False, repr=False)
class RaptorRetriever(Retrieving):
    """`mode` "collapsed" searches all levels at once; "traversal" goes down from the top, the `k` nearest of each level
    to the next, and returns the nearest of all that it met. `score` is the cosine; `why` is "leaf" or "summary".

    A summary's hit has a chunk of its own: its id, no document, its `level` as metadata. So `filters` on documents find
    passages alone, and a summary is left out when it, or every passage under it, is in `exclude`.
    """

    chunks: ChunkSource
    chunk_vectors: VectorStore
    embedder: Embedder
    tree: SummaryTree
    summaries: NodeVectors
    _: KW_ONLY
    mode: str = "collapsed"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is {self.mode!r}; expected one of {', '.join(MODES)}.")

    def find(self, request: RetrievalRequest) -> list[Hit]:
        k, vector = request.k, request.embedded_by(self.embedder)
        exclude = frozenset(request.exclude)
        without = self._summaries_without(exclude)
        if self.mode == "collapsed":
            [leaves] = self.chunk_vectors.search(vector[None, :], k, exclude=exclude, filters=request.filters)
            scores = dict(leaves)
            if not request.filters:
                scores |= dict(self.summaries(request.question, k, exclude=without, vector=vector))
            return self._hits(best_first(scores, k), request.question)
        met = self._met(vector, k, exclude, without)
        hits = self._hits(best_first(met, len(met)), request.question)
        return [hit for hit in hits if matches(hit.chunk, request.filters)][:k]

    def _met(self, vector: Vectors, k: int, exclude: frozenset[str], without: frozenset[str]) -> dict[str, float]:
        """The cosines of what a walk from the top meets and keeps: the `k` nearest of each level."""
        met: dict[str, float] = {}
        here: Sequence[str] = self.tree.roots
        while here:
            allowed = [node_id for node_id in here if node_id not in exclude and node_id not in without]
            kept = dict(best_first(dict(zip(allowed, self._cosines(allowed, vector), strict=True)), k))
            met |= kept
            nodes = [self.tree.nodes[node_id] for node_id in kept if node_id in self.tree.nodes]
            children = {child for node in nodes for child in node.child_ids}
            here = sorted(children - met.keys())
        return met

    def _cosines(self, ids: Sequence[str], vector: Vectors) -> list[float]:
        cosines = np.zeros(len(ids))
        for store, inside in ((self.summaries, True), (self.chunk_vectors, False)):
            places = [place for place, one in enumerate(ids) if (one in self.tree.nodes) is inside]
            if places:
                cosines[places] = store.vectors([ids[place] for place in places]) @ vector
        values: list[float] = cosines.tolist()
        return values

    def _summaries_without(self, exclude: frozenset[str]) -> frozenset[str]:
        """The summaries that `exclude` names, or leaves nothing of."""
        if not exclude:
            return exclude
        return frozenset(
            node_id for node_id, leaves in self.tree.leaves.items() if node_id in exclude or leaves <= exclude
        )

    def _hits(self, scored: Sequence[tuple[str, float]], question: str) -> list[Hit]:
        leaf_ids = [one for one, _ in scored if one not in self.tree.nodes]
        chunks = dict(zip(leaf_ids, self.chunks.chunks_by_id(leaf_ids), strict=True))
        return [
            Hit(chunks[one], score, question, "leaf")
            if one in chunks
            else Hit(_as_chunk(self.tree.nodes[one]), score, question, "summary")
            for one, score in scored
        ]


def _as_chunk(node: TreeNode) -> Chunk:
    return Chunk(node.id, "", 0, 0, len(node.text), node.text, node.n_tokens, metadata={"level": node.level})


def make_raptor(mode: str) -> Callable[[Space, NoOptions], RaptorRetriever]:
    """Makes what makes the retriever in this mode."""

    def make(space: Space, options: NoOptions) -> RaptorRetriever:
        tree, summaries = space.summary_tree
        return RaptorRetriever(space.index, space.index.chunk_vectors, space.embedder, tree, summaries, mode=mode)

    return make


RAPTOR = RetrieverSpec(
    "raptor",
    "Passages and summaries of their clusters, all levels at once.",
    make_raptor("collapsed"),
    "RaptorRetriever",
    prepared=("raptor",),
    source="Sarthi et al., 2024",
)
RAPTOR_TRAVERSAL = RetrieverSpec(
    "raptor-traversal",
    "The same, from the top of the tree downwards.",
    make_raptor("traversal"),
    "RaptorRetriever",
    prepared=("raptor",),
    source="Sarthi et al., 2024",
)


class SummarizeCluster(SavableModule):
    """Raises ValueError for an empty summary: it would stand for its passages and be found by nothing."""

    asks: Mapping[str, str] = {"summarize": "passages -> summary"}
    outputs: ClassVar[dict[str, Any]] = {"summary": str}

    def __init__(self) -> None:
        super().__init__()
        self.summarize = FittingPredict(SummarizePassages, shorten="passages")

    async def aforward(self, passages: Sequence[str]) -> dspy.Prediction:
        check_steps(self)
        reply = await call(self.summarize, passages=list(passages))
        return prediction(dict(reply.items()), **_checked(reply.summary))

    forward = blocking(aforward)


def _checked(summary: str) -> dspy.Prediction:
    if not summary.strip():
        raise ValueError("The summary is empty.")
    return dspy.Prediction(summary=summary.strip())
