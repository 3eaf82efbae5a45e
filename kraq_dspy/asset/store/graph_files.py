"""Keeps beside an index's database its graph of passages and entities, which its writer makes once for each state."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from kraq_dspy.asset.graph.passage_graph import PassageGraph, passage_graph
from kraq_dspy.asset.store.states import writing_to
from kraq_dspy.records import Chunk, Entity, Relationship

GRAPH = "passages.graph"


class IndexRecords(Protocol):
    """What the file is made of: an `Index` is one. `home` is the folder of the state that is open."""

    @property
    def home(self) -> Path: ...

    def file(self, name: str) -> Path | None: ...

    def ids(self, kind: type) -> Any: ...

    def all(self, kind: Any, **conditions: Any) -> Any: ...


def open_passage_graph(index: IndexRecords) -> PassageGraph:
    """The graph of the state; it is made now for a draft. Raises IndexStateError for one that is damaged."""
    path = index.file(GRAPH)
    return PassageGraph.open(path) if path else _graph_of(index, index.all(Entity), index.all(Relationship))


def keep_passage_graph(index: IndexRecords, entities: Iterable[Entity], relationships: Iterable[Relationship]) -> None:
    """Store the graph of the index's chunks and of what will be its entities and relationships."""
    with writing_to(index.home):
        _graph_of(index, entities, relationships).save(index.home / GRAPH)


def _graph_of(index: IndexRecords, entities: Iterable[Entity], relationships: Iterable[Relationship]) -> PassageGraph:
    return passage_graph(
        index.ids(Chunk),
        ((chunk_id, entity.id) for entity in entities for chunk_id in entity.chunk_ids),
        ((link.source_id, link.target_id, link.weight) for link in relationships),
    )
