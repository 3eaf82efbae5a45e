"""Ranks passages by personalised PageRank over them and entities (the idea of HippoRAG: Gutiérrez et al., 2024).

A walker starts at the passages that resemble the question and steps to the entities that they name.
It goes on to related entities and to their passages, and now and then returns to the start.
Passages that it visits often answer the later steps of a question whose first step alone is put
into words. HippoRAG starts at entities that a model links to the question; we start at passages, so
no model is called.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass

import numpy as np

from kraq_dspy._internal.options import require_options
from kraq_dspy.asset.graph.passage_graph import PassageGraph, Visits
from kraq_dspy.ports import ChunkSource, Retriever
from kraq_dspy.records import Hit
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.hits import RetrievalRequest, Retrieving, falling, matches
from kraq_dspy.spec import RetrieverSpec, Space, option


@dataclass(frozen=True)
class PageRankOptions:
    over: str = option("hybrid", "The retriever whose hits the walk starts from.")
    share: float = option(0.6, "Share of the budget that the walk starts from.", least=0.001, most=1)
    damping: float = option(0.5, "Probability of walking on.", least=0.01, most=0.99)
    sharpness: float = option(3.0, "How much more a better hit counts at the start; 0: all alike.", least=0)


@dataclass(eq=False, repr=False)
class PageRankRetriever(Retrieving):
    """Retrieves by personalized PageRank over passages and entities, from the hits of another retriever. `why` is
    "pagerank".

    Args:
        retrieve: the base retriever.
        graph: the graph of passages and entities (`space.passage_graph`).
        chunks: the source of the passages (`space.index`).
        share: the walk starts from the first `share * k` hits; in [0, 1].
        damping: the damping of PageRank.
        sharpness: the exponent of a hit's score at the start, 0 or more.

    Raises:
        ValueError: for an option out of range.

    `score` is the share of visits that a passage gets, in [0, 1]. If PageRank visits fewer than `k` passages, further
    hits of `retrieve` follow. Such a hit has the `why` of `retrieve`, and no higher score than the others. The
    defaults were chosen on musique (`docs/decisions.md`).

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> walk = PageRankRetriever(space.retriever("hybrid"), space.passage_graph, space.index)
    >>> [hit.chunk.title for hit in walk("Where did Ada live?", 2)]
    ['Ada', 'London']
    """

    retrieve: Retriever
    graph: PassageGraph
    chunks: ChunkSource
    _: KW_ONLY
    share: float = PageRankOptions.share
    damping: float = PageRankOptions.damping
    sharpness: float = PageRankOptions.sharpness

    def __post_init__(self) -> None:
        require_options(PageRankOptions, share=self.share, damping=self.damping, sharpness=self.sharpness)
        self.retrieve = as_retriever(self.retrieve)

    def find(self, request: RetrievalRequest) -> list[Hit]:
        k = request.k
        ranking = request.send_to(self.retrieve)
        visits = self.visits(ranking[: math.ceil(self.share * k)])
        hits = [] if visits is None else self._visited(visits, request)

        known = {hit.chunk.id for hit in hits}
        rest = [hit for hit in ranking if hit.chunk.id not in known]
        return falling([*hits, *rest[: k - len(hits)]])

    def _visited(self, visits: Visits, request: RetrievalRequest) -> list[Hit]:
        """The passages that the walk visits most, at most k of those that may be found."""
        k, excluded = request.k, set(request.exclude)
        count = None if request.filters else k + len(excluded)
        ordered = [(id, visit) for id, visit in visits.best(count) if id not in excluded]

        hits: list[Hit] = []
        for start in range(0, len(ordered), k):  # look up no more chunks than needed
            block = ordered[start : start + k]
            chunks = self.chunks.chunks_by_id([chunk_id for chunk_id, _ in block])
            for chunk, (_, visit) in zip(chunks, block, strict=True):
                if matches(chunk, request.filters):
                    hits.append(Hit(chunk, visit, request.question, "pagerank"))
            if len(hits) >= k:
                break
        return hits[:k]

    def visits(self, start: Sequence[Hit]) -> Visits | None:
        """Count the visits of the walk; None if the graph knows no passage of the start."""
        known = self.graph.knows([hit.chunk.id for hit in start])
        start = [hit for hit, is_known in zip(start, known, strict=True) if is_known]
        if not start:
            return None

        scores = np.maximum([hit.score for hit in start], 0.0)
        highest = scores.max()
        weights = np.ones(len(start))
        if highest > 0:
            weights = (scores / highest) ** self.sharpness

        chunk_ids = [hit.chunk.id for hit in start]
        weight_of = dict(zip(chunk_ids, weights.tolist(), strict=True))
        return self.graph.visits(weight_of, self.damping)


def make_pagerank(space: Space, options: PageRankOptions) -> PageRankRetriever:
    walk = asdict(options)
    return PageRankRetriever(space.retriever(walk.pop("over")), space.passage_graph, space.index, **walk)


PAGERANK = RetrieverSpec(
    "pagerank",
    "Evidence over several steps: personalized PageRank over the graph.",
    make_pagerank,
    "PageRankRetriever",
    PageRankOptions,
    needs_graph=True,
)
