"""Makes summaries of clusters of passages, and retrieves both together: RAPTOR (Sarthi et al., 2024)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import FittingPredict, prediction
from kraq_dspy.ports import ChunkSource, Embedder, NearestTexts, VectorStore
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.retrievers.hits import RetrievalRequest, Retrieving, best_first
from kraq_dspy.signatures import SummarizePassages
from kraq_dspy.spec import RetrieverSpec
from kraq_dspy.state import SavableModule


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A summary in the tree.

    Attributes:
        id: the id of the summary.
        level: 1 for a summary of chunks, 2 for a summary of such summaries, and so on.
        child_ids: the ids of chunks (level 1) or of summaries of the level below.
        text: the summary.
        n_tokens: the length in tokens.

    >>> TreeNode("s", level=1, child_ids=("a", "b"), text="Both are rivers.", n_tokens=4).level
    1
    """

    id: str
    level: int
    child_ids: tuple[str, ...]
    text: str
    n_tokens: int


class SummaryTree:
    """A tree of summaries. A summary may have several parents, because clusters overlap.

    Args:
        chunk_ids: the ids of the leaves.
        nodes: the summaries, each with the ids of its children.

    >>> tree = SummaryTree(["a", "b"], [TreeNode("s", 1, ("a", "b"), "Both are rivers.", 4)])
    >>> sorted(tree.leaves["s"])
    ['a', 'b']
    """

    def __init__(self, chunk_ids: Sequence[str], nodes: Sequence[TreeNode]) -> None:
        self.chunk_ids = frozenset(chunk_ids)
        self.nodes: Mapping[str, TreeNode] = {node.id: node for node in nodes}

    @cached_property
    def leaves(self) -> Mapping[str, frozenset[str]]:
        """The chunks under each summary, by its id."""
        leaves: dict[str, frozenset[str]] = {}
        for node in sorted(self.nodes.values(), key=lambda node: node.level):
            leaves[node.id] = frozenset().union(*(leaves.get(child, {child}) for child in node.child_ids))
        return leaves


@dataclass(eq=False, repr=False)
class RaptorRetriever(Retrieving):
    """Retrieves passages and summaries of all levels at once (RAPTOR's "collapsed tree"). `why` is "leaf" or
    "summary".

    Args:
        chunks: the source of the passages (`space.index`).
        chunk_vectors: the store with the embeddings of the chunks.
        embedder: the encoder of the questions.
        tree: the summaries (`space.summary_tree`, made by `kraq precompute DIR raptor`).
        summaries: finds summaries by their embeddings.

    `score` is the cosine, in [-1, 1]. The chunk of a summary has the summary's id, no document, and the metadata
    `level`. So conditions on documents exclude summaries. The retriever leaves out a summary if `exclude` has the
    summary or all passages under it. The paper also searches from the top of the tree down; that found less
    (benchmarks/results/retrieval.md).

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> tree, summaries = space.summary_tree  # of `kraq precompute DIR raptor`
    >>> raptor = RaptorRetriever(space.index, space.index.chunk_vectors, space.embedder, tree, summaries)
    >>> [hit.why for hit in raptor("Where did Ada live?", 1)]
    ['leaf']
    """

    chunks: ChunkSource
    chunk_vectors: VectorStore
    embedder: Embedder
    tree: SummaryTree
    summaries: NearestTexts

    def find(self, request: RetrievalRequest) -> list[Hit]:
        k, vector = request.k, request.embedded_by(self.embedder)
        exclude = frozenset(request.exclude)
        [leaves] = self.chunk_vectors.search(vector[None, :], k, exclude=exclude, filters=request.filters)
        scores = dict(leaves)
        if not request.filters:
            hidden = self._nodes_without_leaves(exclude)
            scores |= dict(self.summaries(request.question, k, exclude=hidden, vector=vector))
        scored = best_first(scores, k)

        leaf_ids = [id for id, _ in scored if id not in self.tree.nodes]
        leaf_of = dict(zip(leaf_ids, self.chunks.chunks_by_id(leaf_ids), strict=True))

        hits = []
        for id, score in scored:
            if id in leaf_of:
                hits.append(Hit(leaf_of[id], score, request.question, "leaf"))
            else:
                hits.append(Hit(self._as_chunk(id), score, request.question, "summary"))
        return hits

    def _nodes_without_leaves(self, exclude: frozenset[str]) -> set[str]:
        """The summaries that are left out themselves, or stand on passages that all are."""
        hidden = set()
        for node_id, leaves in self.tree.leaves.items() if exclude else ():
            if node_id in exclude or leaves <= exclude:
                hidden.add(node_id)
        return hidden

    def _as_chunk(self, node_id: str) -> Chunk:
        """A summary as a passage of no document."""
        node = self.tree.nodes[node_id]
        end = len(node.text)
        return Chunk(node_id, "", 0, 0, end, node.text, node.n_tokens, metadata={"level": node.level})


RAPTOR = RetrieverSpec(
    "raptor",
    "Passages and summaries of their clusters, all levels at once.",
    lambda space, options: RaptorRetriever(space.index, space.index.chunk_vectors, space.embedder, *space.summary_tree),
    "RaptorRetriever",
    prepared=("raptor",),
    source="Sarthi et al., 2024",
)


class SummarizeCluster(SavableModule):
    """Summarizes the passages of a cluster, for RAPTOR's tree.

    Raises ValueError for an empty summary, because no search could find such a summary.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"summary": "Ada and Byron lived in London."}])):
    ...     SummarizeCluster()(passages=["Ada lived in London.", "Byron lived in London."]).summary
    'Ada and Byron lived in London.'
    """

    outputs: ClassVar[dict[str, Any]] = {"summary": str}

    def __init__(self) -> None:
        super().__init__()
        self.summarize = FittingPredict(SummarizePassages, shorten="passages")

    async def aforward(self, passages: Sequence[str]) -> dspy.Prediction:
        reply = await call(self.summarize, passages=list(passages))
        summary = reply.summary.strip()
        if not summary:
            raise ValueError("The summary is empty.")
        return prediction(reply, summary=summary)
