"""Holds a graph whose nodes are numbers, and a part of it: shared by algorithms."""

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.records import Community, Entity, Relationship, content_id

Ints = NDArray[np.int64]

T = TypeVar("T", bound=np.integer)


@dataclass(frozen=True)
class Part:
    """Some entities and the relationships among them.

    `nodes` are numbers in the whole graph, ascending; `links` are numbers of relationships, and `sources` and `targets`
    the positions of their ends in `nodes`.
    """

    nodes: Ints
    links: Ints
    sources: Ints
    targets: Ints


class NumberedGraph:
    """Entities and relationships by number, in the order of their ids."""

    def __init__(self, entities: Iterable[Entity], relationships: Iterable[Relationship]) -> None:
        self.entities = sorted(entities, key=lambda entity: entity.id)
        self.relationships = sorted(relationships, key=lambda link: link.id)
        number_of = {entity.id: number for number, entity in enumerate(self.entities)}
        for link in self.relationships:
            _require_sound(link, number_of)

        self.weights = np.array([link.weight for link in self.relationships], dtype=np.float64)

        sources = [number_of[link.source_id] for link in self.relationships]
        targets = [number_of[link.target_id] for link in self.relationships]
        self._sources = np.array(sources, dtype=np.int64)
        self._targets = np.array(targets, dtype=np.int64)

    def everything(self) -> Part:
        return Part(np.arange(len(self.entities)), np.arange(len(self.relationships)), self._sources, self._targets)

    def entity_ids(self, part: Part) -> tuple[str, ...]:
        return tuple(self.entities[n].id for n in part.nodes)  # sorted, since the numbers are

    def id_of(self, part: Part) -> str:
        return content_id("community", *self.entity_ids(part))

    def community(self, part: Part, level: int, parent_id: str | None, places: Mapping[str, int]) -> Community:
        links = [self.relationships[n] for n in part.links]
        is_alone = np.ones(len(part.nodes), dtype=np.bool_)
        is_alone[part.sources] = is_alone[part.targets] = False

        chunk_ids: set[str] = set()
        for link in links:
            chunk_ids.update(link.chunk_ids)
        for node in part.nodes[is_alone]:
            chunk_ids.update(self.entities[node].chunk_ids)

        return Community(
            id=self.id_of(part),
            level=level,
            parent_id=parent_id,
            child_ids=(),
            entity_ids=self.entity_ids(part),
            relationship_ids=tuple(link.id for link in links),
            chunk_ids=tuple(sorted(chunk_ids, key=lambda id: (places.get(id, len(places)), id))),
        )


def part_of(nodes: Ints, part: Part) -> Part:
    """Take some nodes of `part`, by position, with the links among them."""
    position = np.full(len(part.nodes), -1, dtype=np.int64)
    position[nodes] = np.arange(len(nodes))
    inside = np.flatnonzero((position[part.sources] >= 0) & (position[part.targets] >= 0))
    return Part(part.nodes[nodes], part.links[inside], position[part.sources[inside]], position[part.targets[inside]])


def _require_sound(link: Relationship, number_of: Mapping[str, int]) -> None:
    """Raises ValueError for a link to what is not there, or one without a weight above 0."""
    for end in (link.source_id, link.target_id):
        if end not in number_of:
            raise ValueError(f"Relationship {link.id!r} links {end!r}, which is not among the entities.")
    if not (link.weight > 0 and np.isfinite(link.weight)):
        raise ValueError(f"Relationship {link.id!r} has the weight {link.weight}; it must be a positive number.")


def rows_by_group(groups: Ints, rows: Ints, count: int) -> list[Ints]:
    """`rows` by their group 0 to `count` - 1, in their order."""
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(1, count))
    return np.split(rows[order], ends)


def distinct(numbers: NDArray[T]) -> NDArray[T]:
    """Each of them once, sorted. `np.unique` hashes them first (numpy 2.3 and later), which takes six times as long for
    ten thousand and seventeen times for a million."""
    ordered = np.sort(numbers)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Stop the search for cycles of objects meanwhile, in the whole process: records are none, and
    a third of the time of a large graph goes to it. Also a decorator. Not for work that waits for
    others: what they leave is kept."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
