"""Leads a small change of a finished index from extractions to questions, in time that hangs on the change.

What the change touches is found (`changed_graph.py`), made, and compared with the index's records.
It redoes the broadest communities with a changed entity, with all their parts, as if the rest of
the graph did not exist. Links between communities do not matter for this, so the rest stays as it
is. Only those of them that have such an entity are summarised and asked about. What follows is what
`Finishing` makes of the whole.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from kraq_dspy.asset.graph.build import Graph, ResolvedMentions
from kraq_dspy.asset.graph.communities import find_communities
from kraq_dspy.indexing.index.changed_graph import GraphChange, changed_entities, walks_of
from kraq_dspy.indexing.index.finishing import BuildParts, Finishing
from kraq_dspy.programs.kraq.pipeline import in_reading_order
from kraq_dspy.records import Chunk, Claim, Community, Entity, Merge, Question, Relationship, Summary

_SMALL = 0.25  # share of the links' weight that came or went, up to which a change is followed


class Following(Finishing):
    """The stages of a build after extraction, for an index that was finished before the change."""

    def __init__(self, parts: BuildParts) -> None:
        super().__init__(parts)
        self._former: list[Community] = []  # those that are followed
        self._gone: Set[str] = set()  # ids of those of them that are no more
        self._order: list[str] = []  # ids of all communities
        self._kept: Mapping[str, Summary] = {}  # summaries of communities that need not be looked at

    async def finish(self) -> None:
        resolved = await self._resolve()
        if not await self.follow(resolved):
            graph = await self._make_graph(resolved)
            del resolved
            await Finishing(self._parts).finish_from(graph)

    async def follow(self, resolved: ResolvedMentions) -> bool:
        """Whether the change is small enough to be followed, which was done; else nothing was."""
        index = self._index
        change = await self._change_of(resolved)
        if change is None or not _is_small(change, float(len(resolved.links()))):
            return False

        index.save_passage_graph(walks_of(resolved, index.ids(Chunk)))
        kinds: tuple[type[Any], ...] = (Entity, Relationship, Claim)
        for kind in kinds:
            index.change(kind, change.gone(kind), change.new(kind))
        if list(index.all(Merge)) != list(resolved.merges):
            index.replace(Merge, resolved.merges)

        touched = change.touched()
        self._former = index.families(touched)
        part = self._part_of_graph(resolved, touched)
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

    async def _change_of(self, resolved: ResolvedMentions) -> GraphChange | None:
        """What is other than the index has it; None if the index holds less than was stored."""
        index, results = self._index, self._index.results
        changed = changed_entities(index.chunks_of_entities(), resolved, self._parts.extracted)
        made = changed.keys
        if self._settings.resolve.relationships:  # the model is told the names of both ends
            made = made | resolved.neighbours(made)

        with results.watching("describe") as described:
            new = await self._kraq.described(resolved.part(made, changed.subjects), self._steps)
        change = GraphChange(index, new, changed.former_ids)
        if not change.leads_to(index, resolved):
            return None

        gone = change.gone(Entity) | change.gone(Relationship)
        results.forget_items(gone)
        looked_at = {entity.id for entity in new.entities} | {link.id for link in new.relationships}
        results.forget_outdated("describe", described, looked_at)
        return change

    def _part_of_graph(self, resolved: ResolvedMentions, touched: set[str]) -> Graph:
        """What is touched, with all that its communities hold."""
        members = touched | {entity_id for community in self._former for entity_id in community.entity_ids}
        numbers = resolved.numbers_of(members)
        members = {resolved.id_of(number) for number in numbers.nonzero()[0].tolist()}
        return Graph(
            tuple(self._index.get(Entity, sorted(members))),
            tuple(self._index.links_among(members)),
            tuple(resolved.claims(numbers)),
        )

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


def _is_small(change: GraphChange, total: float) -> bool:
    """`total` is the weight of all links that there are now."""
    changes: defaultdict[str, float] = defaultdict(float)
    for link in change.new(Relationship):
        changes[link.id] += link.weight
    for link in change.former(Relationship):
        changes[link.id] -= link.weight
    least = min(total, total - sum(changes.values()))
    return sum(map(abs, changes.values())) <= _SMALL * least
