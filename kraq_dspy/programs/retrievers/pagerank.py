"""Personalised PageRank over passages and entities (the idea of HippoRAG: Gutiérrez et al., NeurIPS 2024).

A walker starts at the passages that resemble the question, steps to the entities that they name, on to related
entities and to the passages that name those, and now and then returns to the start. Passages that it visits often
answer the later steps of a question whose first step alone is put into words. HippoRAG starts at entities that a model
links to the question; we start at passages, so no model is called.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kraq_dspy.ports import ChunkSource, Retriever
from kraq_dspy.programs.retrievers.adapted import as_retriever
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, Retrieving, best_first, falling, matches
from kraq_dspy.records import Hit
from kraq_dspy.validation import require_numbers


@dataclass(frozen=True, slots=True, eq=False)
class PassageGraph:
    """An undirected graph whose first vertices are the passages, in the order of `chunk_ids`; the rest are entities."""

    chunk_ids: tuple[str, ...]
    graph: Any  # igraph.Graph with the edge attribute "weight"


def passage_graph(
    chunk_ids: Iterable[str],
    mentions: Iterable[tuple[str, str]],
    relationships: Iterable[tuple[str, str, float]] = (),
) -> PassageGraph:
    """From (chunk id, entity id) pairs and (entity id, entity id, weight) links; built once, used for every question.

    A pair that is given twice is one edge of weight 1. Weights of links between the same two entities, in either
    direction, add up; links of an entity to itself and links of weight 0 are left out. Raises ValueError for a chunk
    id that is not in `chunk_ids` and for a negative weight.
    """
    passages = sorted(set(chunk_ids))
    vertex = {("chunk", chunk_id): number for number, chunk_id in enumerate(passages)}
    weights: dict[tuple[int, int], float] = {}
    for chunk_id, entity_id in mentions:
        passage = vertex.get(("chunk", chunk_id))
        if passage is None:
            raise ValueError(
                f"A mention names the chunk {chunk_id!r}, which is not among the {len(passages)} passages."
            )
        weights[passage, vertex.setdefault(("entity", entity_id), len(vertex))] = 1.0
    for source_id, target_id, weight in relationships:
        if weight < 0:
            raise ValueError(f"The link from {source_id!r} to {target_id!r} weighs {weight}; expected 0 or more.")
        if source_id == target_id or weight == 0:
            continue
        source = vertex.setdefault(("entity", source_id), len(vertex))
        target = vertex.setdefault(("entity", target_id), len(vertex))
        edge = (min(source, target), max(source, target))
        weights[edge] = weights.get(edge, 0.0) + weight
    import igraph  # brings matplotlib where that is installed, which takes seconds

    graph = igraph.Graph(n=len(vertex), edges=list(weights))
    graph.es["weight"] = list(weights.values())
    return PassageGraph(tuple(passages), graph)


class PageRankRetriever(Retrieving):
    """Starts from the first `share` of the budget's hits of `retrieve`, each with weight `score ** sharpness`.

    `score` is the share of visits that a passage gets, in [0, 1]; `why` is "pagerank". `damping` is the probability of
    walking on rather than returning to the start. Where the walk reaches too few passages, further hits of `retrieve`
    fill up, with their own `why` and no higher score than the last.

    The start depends on `k`: half of the budget must already resemble the question for the walk to add what does not.
    Defaults from musique (`benchmarks/retrieval_musique.py`).
    """

    def __init__(
        self,
        retrieve: Retriever,
        graph: PassageGraph,
        chunks: ChunkSource,
        *,
        share: float = 0.6,
        damping: float = 0.5,
        sharpness: float = 3.0,
    ) -> None:
        require_numbers(share=share, damping=damping, sharpness=sharpness)
        if not 0 < share <= 1:
            raise ValueError(f"share is {share}; expected the start's share of the budget, above 0 and at most 1.")
        if not 0 < damping < 1:
            raise ValueError(f"damping is {damping}; expected a probability between 0 and 1.")
        if sharpness < 0:
            raise ValueError(f"sharpness is {sharpness}; expected 0 (all starts alike) or more.")
        self.retrieve = as_retriever(retrieve)
        self.graph = graph
        self.chunks = chunks
        self.share = share
        self.damping = damping
        self.sharpness = sharpness
        self._vertex = {chunk_id: number for number, chunk_id in enumerate(graph.chunk_ids)}

    def find(self, request: RetrievalRequest) -> list[Hit]:
        k = request.k
        ranking = request.send_to(self.retrieve)
        visits = self.visits(ranking[: math.ceil(self.share * k)])
        excluded = set(request.exclude)
        hits: list[Hit] = []
        ordered = best_first(
            {chunk_id: visit for chunk_id, visit in visits.items() if chunk_id not in excluded}, len(visits)
        )
        for start in range(0, len(ordered), k):  # look up no more chunks than needed
            block = ordered[start : start + k]
            chunks = self.chunks.chunks_by_id([chunk_id for chunk_id, _ in block])
            hits += [
                Hit(chunk, visit, request.question, "pagerank")
                for chunk, (_, visit) in zip(chunks, block, strict=True)
                if matches(chunk, request.filters)
            ]
            if len(hits) >= k:
                break
        hits = hits[:k]
        known = {hit.chunk.id for hit in hits}
        return falling([*hits, *[hit for hit in ranking if hit.chunk.id not in known][: k - len(hits)]])

    def visits(self, start: Sequence[Hit]) -> dict[str, float]:
        """The visits of every passage that the walk reaches; none when the graph knows no passage of the start."""
        start = [hit for hit in start if hit.chunk.id in self._vertex]
        if not start:
            return {}
        scores = np.maximum([hit.score for hit in start], 0.0)
        weights = (scores / scores.max()) ** self.sharpness if scores.max() > 0 else np.ones(len(start))
        reset = np.zeros(self.graph.graph.vcount())
        reset[[self._vertex[hit.chunk.id] for hit in start]] = weights
        ranks = self.graph.graph.personalized_pagerank(
            vertices=range(len(self._vertex)), damping=self.damping, reset=reset, weights="weight", directed=False
        )
        return {chunk_id: rank for chunk_id, rank in zip(self.graph.chunk_ids, ranks, strict=True) if rank > 0}
