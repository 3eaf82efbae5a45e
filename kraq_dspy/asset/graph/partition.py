"""Parts a graph into communities: Leiden by graspologic-native, other algorithms by igraph and cdlib.

graspologic-native (MIT) comes with kraq. igraph, and cdlib that needs it, are in the extra "communities": igraph's
license is the GPL.
"""

import hashlib
import importlib.util
import io
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.asset.graph.numbered_graph import Ints, Part
from kraq_dspy.errors import MissingExtraError, needs
from kraq_dspy.settings import CommunitySettings

_ITERATIONS = 2  # more gave the same modularity to three digits on 100,000 entities
_LEAST_RESOLUTION = 1e-200  # graspologic refuses 0; below the inverse of a graph's weight, all are the same
_generator_lock = threading.Lock()  # igraph has one random number generator for the whole process


def require_engine(settings: CommunitySettings) -> None:
    """Raises MissingExtraError where the settings name an algorithm of igraph's and it is not installed."""
    if settings.algorithm != "leiden" and importlib.util.find_spec("igraph") is None:
        raise MissingExtraError("igraph", "communities", _purpose(settings))


def _purpose(settings: CommunitySettings) -> str:
    return f"The community algorithm {settings.algorithm!r}"


def membership(part: Part, weights: NDArray[np.float64], settings: CommunitySettings, seed: str) -> Ints:
    """The community of each node, numbered from 0, by the algorithm of the settings.

    Relationships between the same two entities add their `weights`, one for each link of `part`. An entity without a
    link is a community of one. Raises MissingExtraError.
    """
    if not len(part.links):
        return np.arange(len(part.nodes))
    algorithm = _by_leiden if settings.algorithm == "leiden" else _by_igraph
    labels = algorithm(part, weights, settings, seed)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _by_leiden(part: Part, weights: NDArray[np.float64], settings: CommunitySettings, seed: str) -> Ints:
    """Leiden, of links that it would misread: of several between two nodes it keeps the last, it forgets nodes without
    one, and their order changes what it finds."""
    from graspologic_native import leiden

    count = len(part.nodes)
    lower, upper = np.minimum(part.sources, part.targets), np.maximum(part.sources, part.targets)
    pairs, place = np.unique(lower * count + upper, return_inverse=True)
    names = [str(node) for node in range(count)]
    edges = [
        (names[pair // count], names[pair % count], weight)
        for pair, weight in zip(pairs.tolist(), np.bincount(place, weights).tolist(), strict=True)
    ]
    _, community_of = leiden(
        edges,
        starting_communities=None,
        resolution=max(settings.resolution, _LEAST_RESOLUTION),
        randomness=0.001,  # as GraphRAG has it
        iterations=_ITERATIONS,
        use_modularity=True,
        seed=seed_of(seed),
        trials=1,
    )
    labels = np.arange(count, 2 * count)
    labels[[int(name) for name in community_of]] = list(community_of.values())
    return labels


def seed_of(text: str) -> int:
    """A seed of 64 bits, the same in every process.

    >>> seed_of("0 ")
    9056409238019388309
    """
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def _by_igraph(part: Part, weights: NDArray[np.float64], settings: CommunitySettings, seed: str) -> Ints:
    with needs("igraph", "communities", _purpose(settings)):
        import igraph  # brings matplotlib where that is installed, which takes seconds

    graph = igraph.Graph(n=len(part.nodes), edges=np.column_stack([part.sources, part.targets]))
    each = weights.tolist()
    with _igraph_random(seed):
        if settings.algorithm == "louvain":
            clustering = graph.community_multilevel(weights=each)
        elif settings.algorithm == "infomap":
            clustering = graph.community_infomap(edge_weights=each)
        elif settings.algorithm == "label_propagation":
            clustering = graph.community_label_propagation(weights=each)
        else:
            return _by_cdlib(settings.algorithm, graph)
    return np.array(clustering.membership, dtype=np.int64)


def _by_cdlib(algorithm: str, graph: Any) -> Ints:
    """Do as `membership` does, with links without weights. cdlib takes seconds and 400 MB to load, and prints as it
    does."""
    state = random.getstate()
    with needs("cdlib", "communities", f"The community algorithm {algorithm!r}"), redirect_stdout(io.StringIO()):
        from cdlib import algorithms
    random.setstate(state)  # loading it draws

    linked = [node.index for node in graph.vs if node.degree()]
    part = graph.subgraph(linked)
    part.vs["name"] = linked  # texts would come in the order of their hashes

    labels = np.arange(graph.vcount())  # whoever has no link stays alone
    for nodes in sorted(map(sorted, getattr(algorithms, algorithm)(part).communities)):
        labels[nodes] = nodes[0]
    return labels


@contextmanager
def _igraph_random(seed: str) -> Iterator[None]:
    """igraph draws from a generator of our own, and from Python's again afterwards; other threads wait.

    A string seed is hashed by `random` itself, the same in every process.
    """
    import igraph

    with _generator_lock:
        igraph.set_random_number_generator(random.Random(seed))
        try:
            yield
        finally:
            igraph.set_random_number_generator(random)
