"""Keeps beside an index's database its graph of passages and entities, and what its graph was made from.

They are made once by the writer of a state: walks go over the first, and with the second a change is followed without
every extraction being read.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.graph.build import ResolvedMentions
from kraq_dspy.asset.graph.numbered_graph import distinct
from kraq_dspy.asset.graph.passage_graph import PassageGraph, of_edges, passage_graph
from kraq_dspy.asset.store.own_files import damage_text
from kraq_dspy.asset.store.states import writing_to
from kraq_dspy.errors import IndexStateError
from kraq_dspy.records import Chunk, Entity, Relationship

GRAPH, MENTIONS = "passages.graph", "mentions.rows"
_FORM = 1  # to be raised with every change of how mentions are written
_Ints = NDArray[np.int64]


class IndexRecords(Protocol):
    """What these files are made of: an `Index` is one. `home` is the folder of the state that is open."""

    @property
    def home(self) -> Path: ...

    def file(self, name: str) -> Path | None: ...

    def ids(self, kind: type) -> Any: ...

    def all(self, kind: Any, **conditions: Any) -> Any: ...


def open_passage_graph(index: IndexRecords) -> PassageGraph:
    """The graph of the state; it is made now for a draft. Raises IndexStateError for one that is damaged."""
    path = index.file(GRAPH)
    return PassageGraph.open(path) if path else _graph_of(index, index.all(Entity), index.all(Relationship))


def keep_passage_graph(index: IndexRecords, resolved: ResolvedMentions) -> None:
    """Store the graph of the index's chunks and of the entities that were made of the mentions."""
    with writing_to(index.home):
        _graph_of_mentions(index.ids(Chunk), resolved).save(index.home / GRAPH)


def complete_passage_graph(index: IndexRecords) -> None:
    """Store the graph where that was not done since the index began to change."""
    if not (index.home / GRAPH).exists():
        with writing_to(index.home):
            _graph_of(index, index.all(Entity), index.all(Relationship)).save(index.home / GRAPH)


def forget_passage_graph(home: Path) -> None:
    """Remove the graph of an index that begins to change."""
    (home / GRAPH).unlink(missing_ok=True)


def keep_mentions(index: IndexRecords, resolved: ResolvedMentions) -> None:
    """The file is of use only to who knows that the index's records are of the same graph."""
    with writing_to(index.home), replaced(index.home / MENTIONS) as draft, open(draft, "wb") as file:
        np.save(file, np.array(_FORM))
        resolved.write(file)


def open_mentions(index: IndexRecords) -> ResolvedMentions | None:
    """The mentions; None where there are none, or those of another version."""
    path = index.file(MENTIONS)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return ResolvedMentions.read(file) if np.load(file) == _FORM else None
    except (ValueError, EOFError, OSError) as error:
        raise IndexStateError(damage_text(path, str(error))) from error


def _graph_of(index: IndexRecords, entities: Iterable[Entity], relationships: Iterable[Relationship]) -> PassageGraph:
    return passage_graph(
        index.ids(Chunk),
        ((chunk_id, entity.id) for entity in entities for chunk_id in entity.chunk_ids),
        ((link.source_id, link.target_id, link.weight) for link in relationships),
    )


def _graph_of_mentions(chunk_ids: Iterable[str], resolved: ResolvedMentions) -> PassageGraph:
    """The graph that `_graph_of` makes, with the entities numbered in the order of their ids too."""
    passages = sorted(chunk_id.encode() for chunk_id in chunk_ids)
    place = {passage.decode(): number for number, passage in enumerate(passages)}
    ids = [resolved.id_of(key) for key in range(len(resolved.keys))]
    vertex = np.empty(len(ids), dtype=np.int64)
    vertex[sorted(range(len(ids)), key=ids.__getitem__)] = len(passages) + np.arange(len(ids))
    chunks = np.array([place[chunk_id] for chunk_id in resolved.mentions.chunk_ids], dtype=np.int64)
    n_vertices = len(passages) + len(ids)
    names = vertex[resolved.key_of]
    return of_edges(np.array(passages, "S"), n_vertices, _edge_keys(resolved, chunks, names, n_vertices))


def _edge_keys(resolved: ResolvedMentions, vertex_of_chunk: _Ints, vertex_of_name: _Ints, n_vertices: int) -> _Ints:
    """The keys that `of_edges` takes; made in place, since there are tens of millions among a million chunks."""
    mentioned, links = resolved.mentions.rows("mentioned"), resolved.mentions.rows("links")
    mentions = vertex_of_chunk[mentioned[:, 2]]
    mentions *= n_vertices
    mentions += vertex_of_name[mentioned[:, 0]]
    one, other = vertex_of_name[links[:, 0]], vertex_of_name[links[:, 1]]
    edges = np.minimum(one, other) * n_vertices + np.maximum(one, other)
    return np.concatenate([distinct(mentions), edges[one != other]])  # many mentions are there twice
