"""Finds communities of communities by hierarchical Leiden (KRAQ paper, section 2; Leiden: Traag et al. 2019).

Level 0 is Leiden, or another algorithm of the settings, over the whole graph; each community larger than
`CommunitySettings.max_size` is a graph of its own that is split again. A community that is not split is a leaf and is
not repeated on deeper levels, so that no question is made twice; `communities_at` adds it back where a partition of all
entities is wanted. At level 0 we differ: communities whose entities all stand in one chunk are put together by
document, unless `CommunitySettings.by_document` is off.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kraq_dspy.asset.graph.numbered_graph import Ints, NumberedGraph, Part, collector_paused, part_of, rows_by_group
from kraq_dspy.asset.graph.partition import membership
from kraq_dspy.records import Community, Entity, Relationship
from kraq_dspy.settings import CommunitySettings


@collector_paused()
def find_communities(
    entities: Sequence[Entity],
    relationships: Sequence[Relationship],
    settings: CommunitySettings,
    document_of: Mapping[str, str] | None = None,
    former: Sequence[Community] = (),
) -> list[Community]:
    """The hierarchy, by level, then size (largest first), then id.

    The weight between two entities is the sum of their relationships' weights in both directions.
    The same input gives the same result in every process, whatever its order. An entity without
    relationships is a community of one. A community keeps its id as long as it has the same
    entities. With a `former` hierarchy, its entities keep their places, and new ones join the
    community that they have most links to, so that a small change leaves most communities as they
    were. Only communities that outgrow `max_size` are split again. `document_of` has the document
    ids by chunk ids, in reading order (chunks that it lacks come last, by id); without it chunk ids
    are sorted, and nothing is put together by document.

    Raises ValueError for a relationship whose end is not among `entities` or whose weight is not a positive number.
    """
    graph = NumberedGraph(entities, relationships)
    if not graph.entities:
        return []
    places = {chunk_id: place for place, chunk_id in enumerate(document_of or ())}
    splitting = _Splitting(graph, settings, document_of or {}, Followed(graph, former))

    communities: list[Community] = []
    waiting: list[tuple[Part, int, str | None]] = []
    waiting.extend((part, 0, None) for part in splitting.split(graph.everything(), 0, ""))
    while waiting:
        part, level, parent_id = waiting.pop()
        community = graph.community(part, level, parent_id, places)

        if len(part.nodes) > settings.max_size and level + 1 < settings.max_depth:
            children = splitting.split(part, level + 1, community.id)
            if len(children) > 1:
                child_ids = tuple(graph.id_of(child) for child in children)
                community = replace(community, child_ids=child_ids)
                waiting.extend((child, level + 1, community.id) for child in children)
        communities.append(community)

    communities.sort(key=lambda each: (each.level, -len(each.entity_ids), each.id))
    return communities


def communities_at(communities: Iterable[Community], level: int) -> list[Community]:
    """The partition of all entities at `level`: its communities, and the leaves of the broader levels.

    In the order of `communities`. Beyond the deepest level: all leaves. Raises ValueError for a negative level.
    """
    if level < 0:
        raise ValueError(f"level is {level}; it must be 0 or more.")
    return [c for c in communities if c.level == level or (c.is_leaf and c.level < level)]


class Followed:
    """A former hierarchy, followed on a graph that has changed since."""

    def __init__(self, graph: NumberedGraph, former: Iterable[Community]) -> None:
        self._weights = graph.weights
        number = {entity.id: n for n, entity in enumerate(graph.entities)}
        self._labels: dict[int, Ints] = {}
        for place, community in enumerate(sorted(former, key=lambda each: each.id)):
            labels = self._labels.setdefault(community.level, np.full(len(number), -1, dtype=np.int64))
            labels[[number[entity_id] for entity_id in community.entity_ids if entity_id in number]] = place

    def split(self, part: Part, level: int, communities_among: Callable[[Part, int, str], Ints]) -> list[Part]:
        """`part` by the former communities of `level`; empty if none of its entities was in one. New entities that
        nothing links to a former one form the `communities_among` themselves."""
        if level not in self._labels:
            return []

        labels = self._labels[level][part.nodes].copy()
        if (labels < 0).all():
            return []

        self._join(labels, part)
        strangers = np.flatnonzero(labels < 0)
        if len(strangers):
            labels[strangers] = labels.max() + 1 + communities_among(part_of(strangers, part), level, "new")
        _, membership = np.unique(labels, return_inverse=True)
        return parts_by(membership.astype(np.int64), part)

    def _join(self, labels: Ints, part: Part) -> None:
        """Put each new entity into the community with the most weight between them; then those that
        are linked to it."""
        starts = np.concatenate([part.sources, part.targets])
        ends = np.concatenate([part.targets, part.sources])
        weights = np.concatenate([self._weights[part.links]] * 2)
        while True:
            open_links = np.flatnonzero((labels[starts] < 0) & (labels[ends] >= 0))
            if not len(open_links):
                return

            weights_of: dict[int, dict[int, float]] = {}  # of a node, by the label of its neighbours
            for link in open_links.tolist():
                by_label = weights_of.setdefault(int(starts[link]), {})
                label = int(labels[ends[link]])
                by_label[label] = by_label.get(label, 0.0) + float(weights[link])
            for node, by_label in weights_of.items():
                labels[node] = _heaviest(by_label)


@dataclass(frozen=True)
class _Splitting:
    """How a part of the graph falls into communities: as in a former hierarchy if it has them,
    else as the settings say."""

    graph: NumberedGraph
    settings: CommunitySettings
    document_of: Mapping[str, str]
    followed: Followed

    def split(self, part: Part, level: int, name: str) -> list[Part]:
        """Seeded by `name`, so that what becomes of a community does not depend on what else is in
        the graph."""
        former_parts = self.followed.split(part, level, self.membership)
        return former_parts or parts_by(self.membership(part, level, name), part)

    def membership(self, part: Part, level: int, seed: str) -> Ints:
        """The number of each node's community."""
        weights = self.graph.weights[part.links]
        labels = membership(part, weights, self.settings, f"{self.settings.seed} {seed}")
        if level or not self.settings.by_document:
            return labels
        chunk_ids = [self.graph.entities[number].chunk_ids for number in part.nodes]
        return _by_document(labels, chunk_ids, self.document_of)


def _heaviest(weights: Mapping[int, float]) -> int:
    return min(weights, key=lambda label: (-weights[label], label))


def parts_by(membership: Ints, part: Part) -> list[Part]:
    """`part` by the numbers of its nodes' communities (0 to n - 1, none missing), the largest
    first."""
    count = int(membership.max(initial=0)) + 1
    if count == 1:
        return [part]

    position = np.empty(len(part.nodes), dtype=np.int64)  # of each node within its community
    members = rows_by_group(membership, np.arange(len(part.nodes)), count)
    for rows in members:
        position[rows] = np.arange(len(rows))

    inside = np.flatnonzero(membership[part.sources] == membership[part.targets])
    links = rows_by_group(membership[part.sources[inside]], inside, count)

    parts = []
    for rows, own in zip(members, links, strict=True):
        sources, targets = position[part.sources[own]], position[part.targets[own]]
        parts.append(Part(part.nodes[rows], part.links[own], sources, targets))
    return sorted(parts, key=lambda each: (-len(each.nodes), int(each.nodes[0])))


def _by_document(membership: Ints, chunk_ids: Sequence[Sequence[str]], document_of: Mapping[str, str]) -> Ints:
    """`membership` of nodes that stand in these chunks; communities of one chunk each are one for
    each document."""
    chunks_of: dict[int, set[str]] = {}
    for community, ids in zip(membership.tolist(), chunk_ids, strict=True):
        chunks_of.setdefault(community, set()).update(ids)

    community_of: dict[str, int] = {}  # the first of each document
    replaced_by: dict[int, int] = {}
    for community, chunks in chunks_of.items():
        document = document_of.get(next(iter(chunks))) if len(chunks) == 1 else None
        if document is not None:
            replaced_by[community] = community_of.setdefault(document, community)

    joined = [replaced_by.get(community, community) for community in membership.tolist()]
    _, renumbered = np.unique(joined, return_inverse=True)
    return renumbered.astype(np.int64)
