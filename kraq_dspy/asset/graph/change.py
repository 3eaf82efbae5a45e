"""Finds what differs between the graphs of a corpus before and after a change, and makes that alone.

The records are those that the whole graph would have. An entity depends on the rows of its names, a relationship on
those of its ends and predicate, a claim on its chunk, so what differs is about names that stand in chunks which came or
went, or that now mean another entity.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from kraq_dspy.asset.graph.build import Bools, Ints, ResolvedMentions, relationship_id_of
from kraq_dspy.asset.graph.mentions import Rows
from kraq_dspy.asset.graph.numbered_graph import distinct
from kraq_dspy.asset.graph.resolve import entity_id_of
from kraq_dspy.records import Claim, Entity, Relationship


@dataclass(frozen=True)
class GraphChange:
    """Records that are new or may differ, by id, and the ids of those that are no more.

    `claims` has all claims of each chunk of which one differs, in reading order; none for a chunk that is gone.
    `descriptions` is as in `Graph`, for these records. `entities` have every entity of which anything is known anew.
    """

    entities: tuple[Entity, ...] = ()
    gone_entities: frozenset[str] = frozenset()
    relationships: tuple[Relationship, ...] = ()
    gone_relationships: frozenset[str] = frozenset()
    claims: Mapping[str, tuple[Claim, ...]] = field(default_factory=dict)
    descriptions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weight: float = 0.0  # of links that came or went


def keeps_order(before: Iterable[str], after: Iterable[str]) -> bool:
    """Whether the chunks that are in both follow each other as they did."""
    before, after = list(before), list(after)
    former, now = set(before), set(after)
    return [id for id in before if id in now] == [id for id in after if id in former]


def graph_change(before: ResolvedMentions, after: ResolvedMentions) -> GraphChange:
    """The change from one to the other, of which `keeps_order` is true; chunks that are in both say the same in
    both."""
    old, new = _Side(before, after), _Side(after, before)
    pairs = {group for side in (old, new) for group in side.changed_groups()}
    touched = old.touched_keys() | new.touched_keys() | {end for group in pairs for end in group[:2]}
    claims, subjects = _changed_claims(old, new)
    number_of = after.number_of
    keys = [number_of[key] for key in touched | subjects if key in number_of]
    descriptions: dict[str, tuple[str, ...]] = {}
    relationships = after.relationships(new.links_in(pairs), descriptions)
    entities = after.entities(np.array(sorted(keys), dtype=np.int64), descriptions)
    ids = {relationship_id_of(entity_id_of(source), entity_id_of(target), text) for source, target, text in pairs}
    return GraphChange(
        entities=tuple(entities),
        gone_entities=frozenset(entity_id_of(key) for key in touched if key not in number_of),
        relationships=tuple(relationships),
        gone_relationships=frozenset(ids.difference(link.id for link in relationships)),
        claims=claims,
        descriptions=descriptions,
        weight=float(old.changed_links.sum() + new.changed_links.sum()),
    )


class _Side:
    """One of the two, and what of it the other has not."""

    def __init__(self, own: ResolvedMentions, other: ResolvedMentions) -> None:
        self.own = own
        known = set(other.mentions.chunk_ids)
        self.changed_chunk: Bools = np.array([id not in known for id in own.mentions.chunk_ids] or [False])
        same_key = _numbers(own.keys, other.number_of)
        same_name = _numbers(own.mentions.spellings, other.mentions.spellings)
        moved = (same_name >= 0) & (np.append(other.key_of, -1)[same_name] != same_key[own.key_of])
        self.moved_name: Bools = moved if len(moved) else np.array([False])
        self.changed_links = self._changed(own.mentions.rows("links"), 0, 1)

    def _changed(self, rows: Rows, *names: int) -> Bools:
        """Which rows are of chunks that changed, or have names in these columns that moved."""
        changed = self.changed_chunk[rows[:, -1]] if self.changed_chunk.any() else np.zeros(len(rows), dtype=np.bool_)
        for column in names if self.moved_name.any() else ():
            changed |= self.moved_name[rows[:, column]]
        return changed

    def touched_keys(self) -> set[str]:
        """Keys of entities that stand in chunks which the other side has not, or have names that meant another."""
        rows = self.own.mentions.rows("mentioned")
        touched = self._changed(rows, 0)
        return {self.own.keys[key] for key in distinct(self.own.key_of[rows[touched, 0]]).tolist()}

    def changed_groups(self) -> set[tuple[str, str, str]]:
        """The keys of both ends, and the predicate as it is compared, of relationships with a link that the other side
        has not, or has between others."""
        keys, texts = self.own.keys, list(self.own.mentions.texts)
        rows = self.own.mentions.rows("links")[self.changed_links, :3].astype(np.int64)
        rows[:, :2] = self.own.key_of[rows[:, :2]]
        return {(keys[a], keys[b], texts[text]) for a, b, text in np.unique(rows, axis=0).tolist() if a != b}

    def links_in(self, groups: Iterable[tuple[str, str, str]]) -> Rows:
        """All rows of these relationships, as `ResolvedMentions.links` has them."""
        texts, number_of = self.own.mentions.texts, self.own.number_of
        numbers = {
            (number_of[a], number_of[b], texts[text])
            for a, b, text in groups
            if a in number_of and b in number_of and text in texts
        }
        is_source, is_target = (np.zeros(len(self.own.keys), bool) for _ in range(2))
        for source, target, _ in numbers:
            is_source[source] = is_target[target] = True
        near = self.own.links((is_source, is_target))
        return near[[tuple(row) in numbers for row in near[:, :3].tolist()]] if len(near) else near


def _changed_claims(old: _Side, new: _Side) -> tuple[dict[str, tuple[Claim, ...]], set[str]]:
    """The claims by chunk, in reading order, and the keys of whom they are about."""
    before, after = old.own, new.own
    rows, former = after.mentions.rows("claims"), before.mentions.rows("claims")
    place = np.append(_numbers(before.keys, after.number_of, -2), -1)
    kept, former_kept = ~new.changed_chunk[rows[:, 3]], ~old.changed_chunk[former[:, 3]]
    subjects, former_subjects = after.key_of[rows[kept, 0]], place[before.key_of[former[former_kept, 0]]]
    objects, former_objects = after.objects[kept], place[before.objects[former_kept]]
    changed = new.changed_chunk.copy()
    changed[rows[kept][(subjects != former_subjects) | (objects != former_objects), 3]] = True
    chosen = changed[rows[:, 3]]
    gone = np.flatnonzero(old.changed_chunk).tolist()
    claims: dict[str, list[Claim]] = {before.mentions.chunk_ids[chunk]: [] for chunk in gone}
    claims.update((after.mentions.chunk_ids[chunk], []) for chunk in distinct(rows[chosen, 3]).tolist())
    for claim in after.claims(chosen):
        claims[claim.chunk_id].append(claim)
    about = {after.keys[key] for key in distinct(after.key_of[rows[chosen, 0]]).tolist()}
    return {id: tuple(of_chunk) for id, of_chunk in claims.items()}, about


def _numbers(strings: Iterable[str], number_of: Mapping[str, int], unknown: int = -1) -> Ints:
    return np.array([number_of.get(text, unknown) for text in strings], dtype=np.int64)
