"""Leads a small change of a finished index from extractions to questions, in time that hangs on the change.

The graph is made from all extractions, and what differs from the index's records is written. The broadest communities
with an entity of which something differs are followed together with all that they were split into, as if the rest of
the graph were not there: links between communities have no say in that, so the rest stays as it is. Only those of them
that have such an entity are summarised and asked about. What follows is what `Finishing` makes of the whole.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TypeVar

from kraq_dspy.asset.graph.build import Graph
from kraq_dspy.asset.graph.communities import find_communities
from kraq_dspy.indexing.index.finishing import BuildParts, Finishing
from kraq_dspy.programs.kraq.pipeline import in_reading_order
from kraq_dspy.records import Claim, Community, Entity, Merge, Question, Relationship, Summary

R = TypeVar("R", Entity, Relationship, Claim)

_SMALL = 0.25  # share of the links' weight that came or went, up to which a change is followed


class Following(Finishing):
    """The stages of a build behind extraction, where the index was finished before it was changed."""

    def __init__(self, parts: BuildParts) -> None:
        super().__init__(parts)
        self._former: list[Community] = []  # those that are followed
        self._gone: Set[str] = set()  # ids of those of them that are no more
        self._order: list[str] = []  # ids of all communities
        self._kept: Mapping[str, Summary] = {}  # summaries of communities that need not be looked at

    async def finish(self) -> None:
        graph = await self._make_graph()
        if not await self.follow(graph):
            await Finishing(self._parts).finish_from(graph)

    async def follow(self, graph: Graph) -> bool:
        """Whether the change is small enough to be followed, which was done; else nothing was."""
        index = self._index
        entities, former_entities = index.differing(Entity, graph.entities)
        links, former_links = index.differing(Relationship, graph.relationships)
        claims, former_claims = index.differing(Claim, graph.claims)
        if not _is_small(links, former_links, graph.relationships):
            return False

        touched = {entity.id for entity in (*entities, *former_entities)}
        touched.update(claim.entity_id for claim in (*claims, *former_claims))
        for link in (*links, *former_links):
            touched.update((link.source_id, link.target_id))

        index.keep_passage_graph(graph.entities, graph.relationships)
        self._keep(Entity, entities, former_entities)
        self._keep(Relationship, links, former_links)
        self._keep(Claim, claims, former_claims)
        if list(index.all(Merge)) != list(graph.merges):
            index.replace(Merge, graph.merges)

        self._former = self._index.families(touched)
        members = touched.union(*(community.entity_ids for community in self._former))
        part = _part_of(graph, members)
        communities = find_communities(
            part.entities,
            part.relationships,
            self._settings.communities,
            index.reading_order(),
            self._former,
        )
        self._keep_communities(communities)
        self._progress.finish("graph")
        self._kept = self._untouched(communities, touched)
        await self._keep_asked(await self._summarize_and_ask(communities, part, self._kept))
        return True

    def _keep(self, kind: type[R], records: Sequence[R], former: Iterable[R]) -> None:
        gone = {record.id for record in former}.difference(record.id for record in records)
        self._index.change(kind, gone, records)

    def _keep_communities(self, communities: Sequence[Community]) -> None:
        former = {community.id: community for community in self._former}
        changed = [community for community in communities if former.get(community.id) != community]
        self._gone = former.keys() - {community.id for community in communities}
        places = {id: (level, -size) for level, size, id in self._index.community_sizes() if id not in self._gone}
        places.update((community.id, (community.level, -len(community.entity_ids))) for community in communities)
        self._order = sorted(places, key=lambda id: (*places[id], id))
        self._index.change(Community, self._gone, changed)

    def _untouched(self, communities: Iterable[Community], changed: set[str]) -> dict[str, Summary]:
        """The summaries of those communities that neither changed nor have a changed entity."""
        former = {community.id: community for community in self._former}
        stored = set(self._index.ids(Summary))
        ids = [
            community.id
            for community in communities
            if community.id in stored
            and former.get(community.id) == community
            and changed.isdisjoint(community.entity_ids)
        ]
        return {summary.community_id: summary for summary in self._index.get(Summary, ids)}

    def _keep_summaries(self, summaries: Sequence[Summary]) -> None:
        stored = set(self._index.ids(Summary))
        stale = {community.id for community in self._former} - self._kept.keys()
        stale -= {summary.community_id for summary in summaries}
        ids = (stored | {summary.community_id for summary in summaries}) - stale
        self._index.change(Summary, stale & stored, summaries)
        self._index.results.prune("summarize", ids)

    def _keep_questions(self, questions: Sequence[Question]) -> None:
        """`questions` are those of the communities that were looked at."""
        stored = {question.id: question for question in self._index.all(Question)}
        looked_at = {community.id for community in self._former} - self._kept.keys()
        others = (question for question in stored.values() if question.community_id not in looked_at)
        marked = self._marked(in_reading_order([*others, *questions], self._order))
        gone = stored.keys() - {question.id for question in marked}
        changed = [question for question in marked if stored.get(question.id) != question]
        self._index.change(Question, gone, changed)


def _is_small(links: Iterable[Relationship], former_links: Iterable[Relationship], now: Iterable[Relationship]) -> bool:
    """Whether the weights that changed are a small part of those that were there and are there."""
    changes: defaultdict[str, float] = defaultdict(float)
    for link in links:
        changes[link.id] += link.weight
    for link in former_links:
        changes[link.id] -= link.weight

    total = sum(link.weight for link in now)
    former_total = total - sum(changes.values())
    return sum(map(abs, changes.values())) <= _SMALL * min(total, former_total)


def _part_of(graph: Graph, members: Set[str]) -> Graph:
    """The entities that are members, with the links among them and what is claimed of them."""
    links = []
    for link in graph.relationships:
        if link.source_id in members and link.target_id in members:
            links.append(link)
    return Graph(
        tuple(entity for entity in graph.entities if entity.id in members),
        tuple(links),
        tuple(claim for claim in graph.claims if claim.entity_id in members),
    )
