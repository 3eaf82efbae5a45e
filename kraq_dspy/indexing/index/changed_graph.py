"""Finds what a change of the corpus does to the graph of a finished index, without making the rest of the graph.

What is said of an entity comes from the passages that name it. So an entity can differ only if
other passages name it than before, if its names changed, or if a newly extracted passage names it.
A relationship or a claim can differ only if one of its ends is such an entity.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from kraq_dspy.asset.graph.build import Chosen, Graph, Ints, ResolvedMentions
from kraq_dspy.asset.graph.numbered_graph import rows_by_group
from kraq_dspy.asset.graph.passage_graph import PassageGraph, numbered_passage_graph
from kraq_dspy.asset.store.index import Index
from kraq_dspy.records import Claim, Entity, Relationship

R = TypeVar("R", Entity, Relationship, Claim)

NamesAndChunks = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class ChangedEntities:
    """Entities of which something may differ: `keys` are the numbers of those that there are, `former_ids` the ids
    under which the index has them and those that are no more. `subjects` are those about which a claim may differ."""

    keys: Chosen
    former_ids: frozenset[str]
    subjects: Chosen


def changed_entities(
    former: Mapping[str, NamesAndChunks], resolved: ResolvedMentions, extracted: Set[str]
) -> ChangedEntities:
    """Compare the entities' names and passages with those of the index (`Index.chunks_of_entities`).

    `extracted` are the passages whose extractions were made now.
    """
    chunk_ids = resolved.mentions.chunk_ids
    is_extracted = np.array([chunk_id in extracted for chunk_id in chunk_ids], dtype=np.bool_)
    in_chunks = resolved.in_chunks()
    changed = np.zeros(len(resolved.keys), dtype=np.bool_)
    changed[in_chunks[is_extracted[in_chunks[:, 1]], 0]] = True

    names: list[set[str]] = [set() for _ in resolved.keys]
    for name, key in zip(resolved.mentions.spellings, resolved.key_of.tolist(), strict=True):
        names[key].add(name)
    chunks = rows_by_group(in_chunks[:, 0], in_chunks[:, 1], len(resolved.keys))

    for key, its_names in enumerate(names):
        its_chunks = tuple(chunk_ids[n] for n in chunks[key].tolist())
        known_names, known_chunks = former.get(resolved.id_of(key), ((), ()))
        if its_names != set(known_names) or its_chunks != known_chunks:
            changed[key] = True

    changed |= _neighbours_of_moved(former, resolved)
    changed |= _beside_weighed_otherwise(former, resolved, is_extracted, in_chunks)

    ids = {resolved.id_of(key) for key in np.flatnonzero(changed).tolist()}
    gone = former.keys() - {resolved.id_of(key) for key in range(len(resolved.keys))}
    return ChangedEntities(changed, frozenset(ids | gone), changed | resolved.subjects_with(changed))


def _beside_weighed_otherwise(
    former: Mapping[str, NamesAndChunks], resolved: ResolvedMentions, is_extracted: Chosen, in_chunks: Ints
) -> Chosen:
    """What stands in one passage with a phrase that has become an entity, or is none any more, though the passage is as
    it was: it may have more neighbours now, or fewer."""
    ids = {resolved.id_of(key): key for key in range(len(resolved.keys))}
    chunk_ids = resolved.mentions.chunk_ids
    of_gone = {chunk_id for id, (_, chunks) in former.items() if id not in ids for chunk_id in chunks}
    is_new = np.array([id not in former for id in ids], dtype=np.bool_)

    is_moved = np.array([chunk_id in of_gone for chunk_id in chunk_ids], dtype=np.bool_)
    is_moved[in_chunks[is_new[in_chunks[:, 0]], 1]] = True
    is_moved &= ~is_extracted

    beside = np.zeros(len(resolved.keys), dtype=np.bool_)
    beside[in_chunks[is_moved[in_chunks[:, 1]], 0]] = True
    return beside


def _neighbours_of_moved(former: Mapping[str, NamesAndChunks], resolved: ResolvedMentions) -> Chosen:
    """What is linked to a name that means another entity than before: it may have more neighbours now, or fewer."""
    former_id: dict[str, str] = {}
    for entity_id, (names, _) in former.items():
        for name in names:
            former_id[name] = entity_id

    spellings = resolved.mentions.spellings
    has_moved = np.zeros(len(spellings), dtype=np.bool_)
    for number, (name, key) in enumerate(zip(spellings, resolved.key_of.tolist(), strict=True)):
        entity_id = resolved.id_of(key)
        has_moved[number] = former_id.get(name, entity_id) != entity_id

    ends = resolved.mentions.rows("links")[:, :2]
    ends_of_moved = ends[has_moved[ends].any(axis=1)]
    neighbours = np.zeros(len(resolved.keys), dtype=np.bool_)
    neighbours[resolved.key_of[ends_of_moved].ravel()] = True
    return neighbours


class GraphChange:
    """The records of a part of the graph, beside those that the index has of it."""

    def __init__(self, index: Index, new: Graph, former_ids: Set[str]) -> None:
        """`new` is what there is now of the entities that the index has as `former_ids`, and perhaps more."""
        ids = former_ids | {entity.id for entity in new.entities}
        known = sorted(index.known(Entity, ids))
        subjects = {claim.entity_id for claim in new.claims} | ids
        subjects |= index.subjects_with(former_ids - {entity.id for entity in new.entities})
        self._records: dict[type, tuple[dict[str, Any], dict[str, Any]]] = {
            Entity: _by_id(new.entities, index.get(Entity, known)),
            Relationship: _by_id(new.relationships, index.links_of(ids)),
            Claim: _by_id(new.claims, index.claims_about(subjects)),
        }

    def new(self, kind: type[R]) -> list[R]:
        """Those that the index does not have as they are."""
        new, former = self._records[kind]
        return [record for record_id, record in new.items() if former.get(record_id) != record]

    def former(self, kind: type[R]) -> list[R]:
        """Those that the index has, and that are no more as they were."""
        new, former = self._records[kind]
        return [record for record_id, record in former.items() if new.get(record_id) != record]

    def gone(self, kind: type[Entity] | type[Relationship] | type[Claim]) -> set[str]:
        new, former = self._records[kind]
        return former.keys() - new.keys()

    def touched(self) -> set[str]:
        """The ids of entities of which something differs, of their links and of their claims too."""
        entities = (*self.new(Entity), *self.former(Entity))
        links = (*self.new(Relationship), *self.former(Relationship))
        claims = (*self.new(Claim), *self.former(Claim))
        ends = {end for link in links for end in (link.source_id, link.target_id)}
        return {entity.id for entity in entities} | ends | {claim.entity_id for claim in claims}

    def leads_to(self, index: Index, resolved: ResolvedMentions) -> bool:
        """Whether the index has as many entities and relationships behind the change as there are. It has not if
        some were lost that the change does not touch."""
        counts = {
            kind: index.count(kind) + len(new) - len(former)
            for kind, (new, former) in self._records.items()
            if kind is not Claim
        }
        return counts == {Entity: len(resolved.keys), Relationship: resolved.count_relationships()}


def _by_id(new: Sequence[R], former: Sequence[R]) -> tuple[dict[str, R], dict[str, R]]:
    return {record.id: record for record in new}, {record.id: record for record in former}


def walks_of(resolved: ResolvedMentions, chunk_ids: Sequence[str]) -> PassageGraph:
    """The graph of passages and entities, as the records of the whole graph would make it."""
    place = {chunk_id: number for number, chunk_id in enumerate(chunk_ids)}
    place_of = np.array([place[chunk_id] for chunk_id in resolved.mentions.chunk_ids], dtype=np.int64)
    ids = [resolved.id_of(key) for key in range(len(resolved.keys))]
    order = np.empty(len(ids), dtype=np.int64)
    order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))

    in_chunks, links = resolved.in_chunks(), resolved.links()
    mentions = np.stack([place_of[in_chunks[:, 1]], order[in_chunks[:, 0]]], axis=1)
    is_phrase = np.zeros(len(ids), dtype=np.bool_)
    is_phrase[order] = resolved.are_phrases()
    return numbered_passage_graph(chunk_ids, mentions, order[links[:, :2]], is_phrase)
