"""Keeps passages and the entities that they name as one graph in arrays, and walks over it.

In a file the arrays are mapped: to open it takes no time, and processes that read it share its memory.
"""

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.one_blas_thread import ONE_BLAS_THREAD
from kraq_dspy._internal.turns import IN_TURN
from kraq_dspy.asset.arrays import map_arrays, write_arrays
from kraq_dspy.asset.graph.numbered_graph import distinct
from kraq_dspy.errors import IndexStateError, counted

_PRECISE = 1e-8  # the residual at which a walk ends, of the one that it begins with
_LARGE = 100_000  # entries of `neighbours` from which on a walk stays in the neighbourhood of its start
_MOST_ROUNDS = 1000
_ADVICE = "Restore the index from a copy, or mend it: kraq check DIR --repair"
PHRASE_WEIGHT = 0.1
"""What a mention of a noun phrase weighs, and a link with one, where a name's weighs 1: "population" or "member" stands
in passages that have nothing else in common."""
_FAINT = 1e-5  # of the walker at a vertex, for each unit of its degree: less than that is not followed on


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """How often a walk comes to each passage; together with those to entities 1. Passages are numbered by their ids."""

    ids: NDArray[np.bytes_]
    shares: NDArray[np.float64]

    @property
    def peak(self) -> float:
        return float(self.shares.max(initial=0.0))

    def of(self, ids: Sequence[str]) -> list[float]:
        """The share of each passage; 0 for one that the walk does not reach, or the graph does not know."""
        places = find_ids(self.ids, ids)
        return [float(self.shares[place]) if place >= 0 else 0.0 for place in places]

    def best(self, count: int | None = None) -> list[tuple[str, float]]:
        """The most visited passages, all that were visited without `count`; ties by id."""
        places = np.flatnonzero(self.shares)
        if count is not None and count < len(places):
            least = np.partition(self.shares[places], len(places) - count)[len(places) - count]
            places = places[self.shares[places] >= least]
        places = places[np.lexsort((places, -self.shares[places]))][:count]
        return [(self.ids[place].decode(), float(self.shares[place])) for place in places.tolist()]


@dataclass(frozen=True)
class PassageGraph(SharedByCopies):
    """An undirected graph of passages and entities. The first vertices are the passages.

    Attributes:
        ids: the ids of the passages, sorted, `[n_passages]`.
        bounds: the neighbors of vertex v are `neighbours[bounds[v]:bounds[v + 1]]`; `[n_vertices + 1]`.
        neighbours: numbers of vertices, `[n_edges]`. Each edge is stored in both directions.
        weights: the weight of each edge, divided by the square roots of both ends' degrees, `[n_edges]`.
        degrees: the sum of the weights of each vertex's edges, `[n_vertices]`.

    >>> passage_graph(["a", "b"], [("a", "Ada")]).knows(["a", "c"])
    [True, False]
    """

    ids: NDArray[np.bytes_]
    bounds: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    weights: NDArray[np.float32]
    degrees: NDArray[np.float32]

    def save(self, path: Path) -> None:
        parts = (self.ids, self.bounds, self.neighbours, self.weights, self.degrees)
        write_arrays(path, ((part.dtype.str, part.shape, [part]) for part in parts))

    @classmethod
    def open(cls, path: Path) -> "PassageGraph":
        """The graph in a file. Raises IndexStateError for a file that is no such graph."""
        try:
            graph = cls(*map_arrays(path, ("S", "<i8", "<i4", "<f4", "<f4")))
            n_edges = len(graph.neighbours)
            fits = len(graph.bounds) == len(graph.degrees) + 1 and len(graph.weights) == n_edges == graph.bounds[-1]
            if not fits or len(graph.ids) > len(graph.degrees):
                raise ValueError("its arrays do not fit each other")
        except (OSError, ValueError, TypeError) as error:
            raise IndexStateError(f"{str(path)!r} is damaged ({error}). {_ADVICE}") from error
        return graph

    def knows(self, chunk_ids: Sequence[str]) -> list[bool]:
        return [place >= 0 for place in find_ids(self.ids, chunk_ids)]

    @IN_TURN
    def visits(self, start: dict[str, float], damping: float) -> Visits:
        """Personalised PageRank: a walker returns to `start`, by its weights, with probability 1 - `damping`.

        In a large graph the walk is followed if it is not faint (`_nearby`), in others to the end (`_exact`). Raises
        KeyError for a passage that the graph does not know.
        """
        reset = np.zeros(len(self.degrees))
        places = find_ids(self.ids, list(start))
        for chunk_id, place in zip(start, places, strict=True):
            if place < 0:
                raise KeyError(chunk_id)

        reset[places] = list(start.values())
        reset /= reset.sum()
        try:
            with np.errstate(invalid="raise", over="raise", divide="raise"):
                is_small = len(self.neighbours) <= _LARGE
                solved = self._exact(reset, damping) if is_small else self._nearby(places, reset, damping)
            if not np.isfinite(solved).all():
                raise ArithmeticError("a walk leads nowhere")
        except (IndexError, ValueError, ArithmeticError) as error:
            raise IndexStateError(f"The graph of passages is damaged ({error}). {_ADVICE}") from error
        return Visits(self.ids, solved[: len(self.ids)])

    def _nearby(self, places: Sequence[int], reset: NDArray[np.float64], damping: float) -> NDArray[np.float64]:
        """Pushes the walker on from vertex to vertex (Andersen, Chung and Lang, FOCS 2006), all at
        once in each round: the work hangs on `_FAINT` and not on the size of the graph. A vertex's
        share errs by `_FAINT` times its degree at most."""
        shares, here = np.zeros_like(reset), reset
        active = np.asarray(places, np.int64)
        for _ in _rounds():
            if not len(active):
                break
            leaving = here[active]
            here[active] = 0
            shares[active] += (1 - damping) * leaving

            # The edges that lead from the active vertices, one vertex's after the other's.
            first, counts = self.bounds[active], self.bounds[active + 1] - self.bounds[active]
            begins = np.cumsum(counts) - counts
            edges = np.repeat(first - begins, counts) + np.arange(counts.sum())
            reached = self.neighbours[edges]

            pushed = damping * leaving / np.sqrt(np.maximum(self.degrees[active], _FAINT))
            scale = self.weights[edges] * np.sqrt(self.degrees[reached])
            np.add.at(here, reached, np.repeat(pushed, counts) * scale)
            reached = distinct(reached)
            active = reached[here[reached] > _FAINT * self.degrees[reached]]
        return shares + (1 - damping) * here

    @ONE_BLAS_THREAD
    def _exact(self, reset: NDArray[np.float64], damping: float) -> NDArray[np.float64]:
        """Solve it exactly. With root degrees divided out the equations are symmetric, so conjugate
        gradients solve them, in some twenty passes over the edges."""
        right = (1 - damping) * reset / self._roots
        solution, residual = np.zeros_like(right), right
        direction, left = residual, float(residual @ residual)
        enough = left * _PRECISE**2
        for _ in _rounds():
            if not left > enough:
                break
            step = direction - damping * self._spread(direction)
            length = left / float(direction @ step)
            solution += length * direction
            residual = residual - length * step
            before, left = left, float(residual @ residual)
            direction = residual + left / before * direction

        shares: NDArray[np.float64] = np.maximum(solution * self._roots, 0)
        return shares

    def _spread(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weighted sum of its neighbours' values, for each vertex."""
        sums = np.zeros_like(values)
        if len(self._linked):
            neighbours, weights = self._wide
            sums[self._linked] = np.add.reduceat(values[neighbours] * weights, self.bounds[self._linked])
        return sums

    @cached_property
    def _wide(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """`neighbours` and `weights` in the types in which numpy counts, so that it converts them once and not in each
        of a walk's rounds. Used for small graphs alone."""
        return self.neighbours.astype(np.int64), self.weights.astype(np.float64)

    @cached_property
    def _linked(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.degrees)

    @cached_property
    def _roots(self) -> NDArray[np.float64]:
        return np.sqrt(np.where(self.degrees > 0, self.degrees, 1).astype(np.float64))


def passage_graph(
    chunk_ids: Iterable[str],
    mentions: Iterable[tuple[str, str]],
    relationships: Iterable[tuple[str, str, float]] = (),
    phrases: Collection[str] = (),
) -> PassageGraph:
    """Make the graph of passages and entities.

    Args:
        chunk_ids: the ids of all passages.
        mentions: pairs of chunk id and entity id. A repeated pair is one edge of weight 1.
        relationships: entity id, entity id and weight, 0 or more. Weights between the same two entities add up, in
            either direction. Links of an entity to itself, and of weight 0, are left out.
        phrases: ids of entities that are noun phrases, not names. The weights of their edges are multiplied by
            `PHRASE_WEIGHT`.

    Returns:
        The graph, undirected.

    Raises:
        ValueError: for a mention of an unknown chunk, and for a negative weight.

    >>> graph = passage_graph(["a", "b", "c"], [("a", "Ada"), ("b", "Ada"), ("c", "Byron")])
    >>> [id for id, _ in graph.visits({"a": 1.0}, damping=0.5).best()]
    ['a', 'b']
    """
    passages = sorted({chunk_id.encode() for chunk_id in chunk_ids})
    place = {chunk_id.decode(): number for number, chunk_id in enumerate(passages)}
    entity: dict[str, int] = {}
    sources, targets, weights = array("q"), array("q"), array("d")
    weight_of = dict.fromkeys(phrases, PHRASE_WEIGHT)
    for chunk_id, entity_id in mentions:
        if chunk_id not in place:
            raise ValueError(
                f"A mention names the chunk {chunk_id!r}, which is not among the {counted(len(passages), 'passage')}."
            )
        sources.append(place[chunk_id])
        targets.append(len(passages) + entity.setdefault(entity_id, len(entity)))
        weights.append(weight_of.get(entity_id, 1.0))

    for source_id, target_id, weight in relationships:
        if weight < 0:
            raise ValueError(f"The link from {source_id!r} to {target_id!r} weighs {weight}; expected 0 or more.")
        if source_id == target_id or weight == 0:
            continue
        ends = [len(passages) + entity.setdefault(entity_id, len(entity)) for entity_id in (source_id, target_id)]
        sources.append(min(ends))
        targets.append(max(ends))
        weights.append(weight * min(weight_of.get(source_id, 1.0), weight_of.get(target_id, 1.0)))
    return _graph_of_edges(passages, len(entity), np.asarray(sources), np.asarray(targets), np.asarray(weights))


def numbered_passage_graph(
    chunk_ids: Sequence[str],
    mentions: NDArray[np.int64],
    links: NDArray[np.int64],
    is_phrase: NDArray[np.bool_],
) -> PassageGraph:
    """Do as `passage_graph` does, of what is numbered already.

    `mentions` are rows of a chunk, as a place in `chunk_ids`, and an entity; `links` rows of two entities, one for each
    time that they are linked. `is_phrase` has a value for each entity. An entity without a mention is no vertex of
    `passage_graph`, so each needs one.
    """
    passages = sorted({chunk_id.encode() for chunk_id in chunk_ids})
    place = {passage: number for number, passage in enumerate(passages)}
    place_of = np.array([place[chunk_id.encode()] for chunk_id in chunk_ids], dtype=np.int64)
    sources = np.concatenate([place_of[mentions[:, 0]], len(passages) + links.min(axis=1)])
    targets = len(passages) + np.concatenate([mentions[:, 1], links.max(axis=1)])
    weight_of = np.where(is_phrase, PHRASE_WEIGHT, 1.0)
    weights = np.concatenate([weight_of[mentions[:, 1]], weight_of[links].min(axis=1)])
    return _graph_of_edges(passages, len(is_phrase), sources, targets, weights)


def _graph_of_edges(
    passages: Sequence[bytes],
    n_entities: int,
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> PassageGraph:
    """Make the graph of edges between vertices: the passages, then the entities. The source of an edge is the smaller
    number. A mention counts once, and links add up."""
    n_vertices = len(passages) + n_entities
    edges, edge_of = np.unique(sources * n_vertices + targets, return_inverse=True)
    first, second = np.divmod(edges, n_vertices)
    times_given = np.bincount(edge_of, minlength=len(edges))
    summed = np.bincount(edge_of, weights, len(edges))
    weight_of_edge = np.where(first < len(passages), summed / times_given, summed)

    begins, neighbours = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.lexsort((neighbours, begins))
    begins, neighbours, both_ways = begins[order], neighbours[order], np.tile(weight_of_edge, 2)[order]

    degrees = np.bincount(begins, both_ways, n_vertices)
    divided = (both_ways / np.sqrt(degrees[begins] * degrees[neighbours])).astype(np.float32)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(begins, minlength=n_vertices))])
    passage_ids = np.array(passages, "S")
    return PassageGraph(passage_ids, bounds, neighbours.astype(np.int32), divided, degrees.astype(np.float32))


def _rounds() -> Iterator[int]:
    """More than any walk takes over a sound graph (some hundred). Raises ArithmeticError behind the last one."""
    yield from range(_MOST_ROUNDS)
    raise ArithmeticError(f"a walk does not end after {_MOST_ROUNDS} rounds")


def find_ids(ids: NDArray[np.bytes_], some: Sequence[str]) -> list[int]:
    """Tell where each of `some` stands in sorted `ids`; -1 if it does not."""
    if not len(ids) or not some:
        return [-1] * len(some)
    encoded = np.array([id.encode() for id in some], "S")
    places = np.minimum(np.searchsorted(ids, encoded), len(ids) - 1)
    return [int(at) if ids[at] == key else -1 for at, key in zip(places, encoded, strict=True)]
