"""Runs other community algorithms than Leiden, and scores any partition, by cdlib (extra "communities") and igraph.

cdlib takes seconds and 400 MB to import, so it is imported when it is asked for. It prints on import and draws from
the process's random numbers; both are kept from the caller.
"""

import contextlib
import importlib
import importlib.util
import io
import math
import random
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import igraph
import numpy as np
from numpy.typing import NDArray

from kraq_dspy.asset.graph.numbered_graph import Ints, NumberedGraph, Part, igraph_random
from kraq_dspy.errors import MissingExtraError, needs
from kraq_dspy.records import Community, Entity, Relationship

OF_CDLIB = ("eigenvector", "greedy_modularity", "label_propagation", "louvain", "walktrap")
ALGORITHMS = (*OF_CDLIB, "infomap")

_random_lock = threading.Lock()


def require_algorithm(algorithm: str) -> None:
    """Raises ValueError for one that is not known, MissingExtraError where its package is missing; imports nothing."""
    if algorithm not in ALGORITHMS:
        raise ValueError(f"Unknown algorithm {algorithm!r}; known: {', '.join(ALGORITHMS)}.")
    if algorithm in OF_CDLIB and importlib.util.find_spec("cdlib") is None:
        raise MissingExtraError("cdlib", "communities", f"The community algorithm {algorithm!r}")


def membership_by(algorithm: str, part: Part, weights: NDArray[np.float64], seed: str) -> Ints:
    """The community of each node that one of `ALGORITHMS` finds, numbered from 0; `weights` are of the part's links.

    The same input and seed give the same result. Raises as `require_algorithm`.
    """
    require_algorithm(algorithm)
    membership = np.arange(len(part.nodes))
    if not len(part.links):
        return membership
    graph = _simple_graph(part, weights)
    if algorithm == "infomap":
        with igraph_random(seed):
            node_groups = list(graph.community_infomap(edge_weights="weight"))
    else:
        with _quiet(seed):
            node_groups = getattr(_cdlib("algorithms"), algorithm)(graph).communities
    for number, nodes in enumerate(sorted(map(sorted, node_groups))):
        membership[nodes] = number
    return np.unique(membership, return_inverse=True)[1].astype(np.int64)


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
    graph = _simple_graph(numbered.everything(), numbered.weights)
    if not graph.ecount():
        return dict.fromkeys(("modularity", "coverage", "conductance", "internal_density"), math.nan)
    home = np.empty(len(number_of), dtype=np.int64)
    nodes = []
    for number, community in enumerate(communities):
        nodes.append([number_of[entity_id] for entity_id in community.entity_ids])
        home[nodes[-1]] = number
    edges = np.array(graph.get_edgelist())
    with _quiet("0"):
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


def _simple_graph(part: Part, weights: NDArray[np.float64]) -> igraph.Graph:
    """Undirected, weights of parallel links added up. Names are numbers: those of texts would be in hash order."""
    graph = igraph.Graph(n=len(part.nodes), edges=np.column_stack([part.sources, part.targets]))
    graph.es["weight"] = weights.tolist()
    graph.simplify(combine_edges="sum")
    graph.vs["name"] = list(range(graph.vcount()))
    return graph


def _cdlib(name: str) -> Any:
    with needs("cdlib", "communities", "Community algorithms other than Leiden"):
        cdlib = importlib.import_module("cdlib")
    return cdlib.NodeClustering if name == "NodeClustering" else importlib.import_module(f"cdlib.{name}")


@contextlib.contextmanager
def _quiet(seed: str) -> Iterator[None]:
    """cdlib's remarks are swallowed, and the process's random numbers go on afterwards as if it had not drawn any."""
    with _random_lock:
        python, numpy = random.getstate(), np.random.get_state()
        random.seed(seed)
        np.random.seed(random.getrandbits(32))
        random.seed(seed)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
