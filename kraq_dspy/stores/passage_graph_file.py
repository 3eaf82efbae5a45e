"""Keeps an index's graph of passages and entities beside its database, made once by the writer of a state."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kraq_dspy.graph.passage_graph import PassageGraph, passage_graph
from kraq_dspy.records import Chunk, Entity, Relationship
from kraq_dspy.stores.states import writing_to

if TYPE_CHECKING:
    from kraq_dspy.stores.index import Index

FILE = "passages.graph"


def open_passage_graph(index: "Index") -> PassageGraph:
    """That of the state; made now for a draft, or an index that an older version made."""
    path = index.home / FILE
    return PassageGraph.open(path) if path.exists() else _graph_of(index, index.all(Entity), index.all(Relationship))


def keep_passage_graph(index: "Index", entities: Iterable[Entity], relationships: Iterable[Relationship]) -> None:
    """Store the graph of the index's chunks and of these records, which are all that it has."""
    with writing_to(index.home):
        _graph_of(index, entities, relationships).save(index.home / FILE)


def complete_passage_graph(index: "Index") -> None:
    """Store the graph where that was not done since the index began to change."""
    if not (index.home / FILE).exists():
        keep_passage_graph(index, index.all(Entity), index.all(Relationship))


def forget_passage_graph(home: Path) -> None:
    """For an index that begins to change."""
    (home / FILE).unlink(missing_ok=True)


def _graph_of(index: "Index", entities: Iterable[Entity], relationships: Iterable[Relationship]) -> PassageGraph:
    return passage_graph(
        index.ids(Chunk),
        ((chunk_id, entity.id) for entity in entities for chunk_id in entity.chunk_ids),
        ((link.source_id, link.target_id, link.weight) for link in relationships),
    )
