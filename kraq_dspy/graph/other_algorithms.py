"""Runs other community algorithms than Leiden, and scores any partition, by cdlib (extra "communities").

cdlib takes seconds and 400 MB to import, so it is imported when it is asked for. It prints on import and draws from
the process's random numbers; both are kept from the caller.
"""

import contextlib
import importlib
import io
import math
import random
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import igraph
import numpy as np

from kraq_dspy.errors import MissingExtraError
from kraq_dspy.graph.communities import NumberedGraph, parts_by
from kraq_dspy.records import Community, Entity, Relationship

ALGORITHMS = ("eigenvector", "greedy_modularity", "label_propagation", "louvain", "walktrap")

_random_lock = threading.Lock()


def partition_with(
    algorithm: str, entities: Iterable[Entity], relationships: Iterable[Relationship], *, seed: int = 0
) -> list[Community]:
    """The communities that one of `ALGORITHMS` finds, all on level 0, the largest first; chunk ids are sorted.

    The same input and seed give the same result. Raises ValueError for an unknown algorithm, MissingExtraError without
    cdlib.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"Unknown algorithm {algorithm!r}; known: {', '.join(ALGORITHMS)}.")
    numbered = NumberedGraph(entities, relationships)
    if not numbered.entities:
        return []
    graph = _simple_graph(numbered)
    membership = np.arange(len(numbered.entities))
    if graph.ecount():
        with _quiet(seed):
            node_groups = getattr(_cdlib("algorithms"), algorithm)(graph).communities
        for number, nodes in enumerate(sorted(map(sorted, node_groups))):
            membership[nodes] = number
        _, membership = np.unique(membership, return_inverse=True)
    parts = parts_by(membership, numbered.everything())
    communities = [numbered.community(part, 0, None, {}) for part in parts]
    return sorted(communities, key=lambda community: (-len(community.entity_ids), community.id))


def score_partition(
    entities: Iterable[Entity], relationships: Iterable[Relationship], communities: Sequence[Community]
) -> dict[str, float]:
    """How well `communities` part the graph, by name of the score; pairs of entities count once, without weights.

    "modularity" (Newman and Girvan, up to 1) and "coverage" (the share of links inside communities, [0, 1]) are of the
    whole; "conductance" (the share of a community's link ends that leave it, [0, 1], less is better) and
    "internal_density" ([0, 1]) are means over the communities where they are defined. NaN where there is no link.
    Raises ValueError when the communities are no partition of the entities.
    """
    numbered = NumberedGraph(entities, relationships)
    number_of = {entity.id: number for number, entity in enumerate(numbered.entities)}
    covered = sorted(entity_id for community in communities for entity_id in community.entity_ids)
    if covered != list(number_of):
        raise ValueError(
            f"The communities name {len(covered)} entities, {len(set(covered) & set(number_of))} of the graph's "
            f"{len(number_of)}: each must be in exactly one. Take communities_at(communities, level)."
        )
    graph = _simple_graph(numbered)
    if not graph.ecount():
        return dict.fromkeys(("modularity", "coverage", "conductance", "internal_density"), math.nan)
    home = np.empty(len(number_of), dtype=np.int64)
    nodes = []
    for number, community in enumerate(communities):
        nodes.append([number_of[entity_id] for entity_id in community.entity_ids])
        home[nodes[-1]] = number
    edges = np.array(graph.get_edgelist())
    with _quiet(0):
        evaluation = _cdlib("evaluation")
        clustering = _cdlib("NodeClustering")(nodes, graph, "communities")
        conductance = evaluation.conductance(graph, clustering, summary=False)
        density = evaluation.internal_edge_density(graph, clustering, summary=False)
        modularity = evaluation.newman_girvan_modularity(graph, clustering).score
    linked = [score for score, community in zip(conductance, nodes, strict=True) if sum(graph.degree(community))]
    several = [score for score, community in zip(density, nodes, strict=True) if len(community) > 1]
    return {
        "modularity": float(modularity),
        "coverage": float((home[edges[:, 0]] == home[edges[:, 1]]).mean()),
        "conductance": float(np.mean(linked)) if linked else math.nan,
        "internal_density": float(np.mean(several)) if several else math.nan,
    }


def _simple_graph(numbered: NumberedGraph) -> igraph.Graph:
    """Undirected, weights of parallel links added up. Names are numbers: those of texts would be in hash order."""
    part = numbered.everything()
    graph = igraph.Graph(n=len(part.nodes), edges=np.column_stack([part.sources, part.targets]))
    graph.es["weight"] = numbered.weights.tolist()
    graph.simplify(combine_edges="sum")
    graph.vs["name"] = list(range(graph.vcount()))
    return graph


def _cdlib(name: str) -> Any:
    try:
        cdlib = importlib.import_module("cdlib")
    except ModuleNotFoundError as error:
        raise MissingExtraError("cdlib", "communities", "Community algorithms other than Leiden") from error
    return cdlib.NodeClustering if name == "NodeClustering" else importlib.import_module(f"cdlib.{name}")


@contextlib.contextmanager
def _quiet(seed: int) -> Iterator[None]:
    """cdlib's remarks are swallowed, and the process's random numbers go on afterwards as if it had not drawn any."""
    with _random_lock:
        python, numpy = random.getstate(), np.random.get_state()
        random.seed(seed)
        np.random.seed(seed)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
