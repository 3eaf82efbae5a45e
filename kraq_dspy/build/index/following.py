"""Leads a small change of a finished index from extractions to questions, in time that hangs on the change.

The graph's records that differ are made, and no others (`graph/change.py`). The broadest communities with one of their
entities are followed together with all that they were split into, as if the rest of the graph were not there: links
between communities have no say in that, so the rest stays as it is. Only those of them that have such an entity are
summarised and asked about. What follows is what `Finishing` makes of the whole.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from kraq_dspy.asset.graph.build import Graph, ResolvedMentions
from kraq_dspy.asset.graph.change import GraphChange, keeps_order
from kraq_dspy.asset.graph.communities import drift, find_communities
from kraq_dspy.asset.store.graph_files import keep_mentions, keep_passage_graph, open_mentions
from kraq_dspy.build.index.finishing import DRIFT, LOST, BuildParts, Finishing
from kraq_dspy.errors import IndexStateError, UnknownRecordError
from kraq_dspy.programs.kraq.pipeline import in_reading_order
from kraq_dspy.records import Claim, Community, Entity, Extraction, Merge, Question, Relationship, Summary

_SMALL = 0.25  # share of the chunks that came or went, up to which a change is followed
_BOUND = 6  # by how much more than the share of changed links the lost modularity may have grown (`_look_for_drift`)


@dataclass(frozen=True)
class Difference:
    """The ids of the chunks that a change brings and takes away, and of those that the build then extracted.

    Extracted are the new ones and those that failed in an earlier build.
    """

    new: Set[str]
    gone: Set[str]
    extracted: set[str] = field(default_factory=set)


class Following(Finishing):
    """The stages of a build behind extraction, where the index was finished before it was changed.

    Without a `difference`, which chunks came and went is found by comparing all of them.
    """

    def __init__(self, parts: BuildParts, problems: list[str], difference: Difference | None) -> None:
        super().__init__(parts, problems, stable=True)
        self._difference = difference
        self._rows = parts.index.graph_rows
        self._former: list[Community] = []  # those that are followed
        self._gone: Set[str] = set()  # ids of those of them that are no more
        self._order: list[str] = []  # ids of all communities
        self._kept: Mapping[str, Summary] = {}  # summaries of communities that need not be looked at

    async def follow(self) -> bool:
        """Whether the change could be followed; else everything is to be made from the extractions."""
        with ThreadPoolExecutor(1) as beside:
            return await self._follow(beside)

    async def _follow(self, beside: ThreadPoolExecutor) -> bool:
        """The graph of passages, work for numpy alone, is made `beside`."""
        index = self._index
        self._progress.start("graph", None)
        before = open_mentions(index)
        order = self._order_after(before.mentions.chunk_ids) if before else None
        if before is None or order is None:
            return False
        known = set(before.mentions.chunk_ids)
        added = index.get(Extraction, [chunk_id for chunk_id in order if chunk_id not in known])
        change, after = await self._kraq.graph_change(before, order, added, self._steps)
        least = min(len(one.mentions.rows("links")) for one in (before, after))
        del before, known  # hundreds of megabytes among a million chunks
        changed = {entity.id for entity in change.entities}
        self._former = self._rows.families(changed | change.gone_entities)
        of_passages = beside.submit(keep_passage_graph, index, after)
        self._keep_graph(change, after)
        former_members = {entity_id for community in self._former for entity_id in community.entity_ids}
        members = (former_members | changed) - change.gone_entities
        try:
            entities = tuple(index.get(Entity, sorted(members)))
        except UnknownRecordError:  # one was lost
            return False
        links = tuple(self._rows.relationships_among(members))
        place = {chunk_id: number for number, chunk_id in enumerate(order)}
        claims = tuple(sorted(self._rows.claims_about(members), key=lambda claim: place[claim.chunk_id]))
        communities = find_communities(entities, links, self._settings.communities, order, self._former)
        self._keep_communities(communities)
        keep_mentions(index, after)
        self._look_for_drift(least, change.weight)
        self._progress.finish("graph")
        self._kept = self._untouched(communities, changed)
        questions = await self._summarize_and_ask(communities, Graph(entities, links, claims), self._kept)
        of_passages.result()  # before the index is called complete
        await self._keep_asked(questions)
        return True

    def _order_after(self, before: Sequence[str]) -> list[str] | None:
        """The extracted chunks in reading order, where no more of them differ from those `before` than can be followed.

        Only documents with chunks that came, went or were tried again are looked at: the others follow each other as
        before.
        """
        difference = self._difference
        if difference is None:
            extracted = set(self._index.ids(Extraction))
            order = [chunk_id for chunk_id in self._index.reading_order() if chunk_id in extracted]
        else:
            changed = difference.new | difference.extracted
            touched = self._rows.reading_order(set(self._rows.documents_of(changed).values()))
            extracted = self._rows.known(Extraction, touched)
            order = [chunk_id for chunk_id in before if chunk_id not in difference.gone and chunk_id not in touched]
            for document_id, some in groupby(touched.items(), key=itemgetter(1)):
                place = bisect_left(order, document_id, key=lambda id: self._rows.documents_of([id])[id])
                order[place:place] = [chunk_id for chunk_id, _ in some if chunk_id in extracted]
        return order if _is_small(before, order) else None

    def _keep_graph(self, change: GraphChange, after: ResolvedMentions) -> None:
        index = self._index
        self._rows.change(Entity, change.gone_entities, change.entities)
        self._rows.change(Relationship, change.gone_relationships, change.relationships)
        former = {claim.id for claim in self._rows.claims_of(change.claims)}
        self._rows.change(Claim, former, (claim for of_chunk in change.claims.values() for claim in of_chunk))
        if list(index.all(Merge)) != list(after.merges):
            index.replace(Merge, after.merges)

    def _keep_communities(self, communities: Sequence[Community]) -> None:
        former = {community.id: community for community in self._former}
        changed = [community for community in communities if former.get(community.id) != community]
        self._gone = former.keys() - {community.id for community in communities}
        places = {id: (level, -size) for level, size, id in self._rows.sizes() if id not in self._gone}
        places.update((community.id, (community.level, -len(community.entity_ids))) for community in communities)
        self._order = sorted(places, key=lambda id: (*places[id], id))
        self._rows.change(Community, self._gone, changed)

    def _documents_of(self, communities: Sequence[Community]) -> Mapping[str, str]:
        return self._rows.documents_of({chunk_id for community in communities for chunk_id in community.chunk_ids})

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
        self._rows.change(Summary, stale & stored, summaries)
        self._index.results.prune("summarize", ids)

    def _keep_questions(self, questions: Sequence[Question]) -> None:
        """`questions` are those of the communities that were looked at."""
        stored = {question.id: question for question in self._index.all(Question)}
        looked_at = {community.id for community in self._former} - self._kept.keys()
        others = (question for question in stored.values() if question.community_id not in looked_at)
        marked = self._marked(in_reading_order([*others, *questions], self._order))
        gone = stored.keys() - {question.id for question in marked}
        changed = [question for question in marked if stored.get(question.id) != question]
        self._rows.change(Question, gone, changed)

    def _look_for_drift(self, n_links: int, weight: float) -> None:
        """Modularity is measured only where it may have been lost beyond what is reported.

        `n_links` is how many there were, or are, whichever is less; `weight` is that of those which came or went.
        Where a share f of the links' weight comes or goes, the part of it inside communities changes by f at most, and
        the sum of the squared shares of degrees by 2 f: the modularity of any partition changes by 3 f at most, so what
        is lost against the best one by 6 f.
        """
        lost, changed = json.loads(self._index.results.settled(LOST))
        changed += weight
        if lost + _BOUND * changed / max(1, n_links) > DRIFT:
            everything = list(self._index.all(Entity)), list(self._index.all(Relationship))
            try:
                lost, changed = drift(list(self._index.all(Community)), *everything, self._settings.communities), 0.0
            except ValueError as error:
                path = self._index.path
                raise IndexStateError(
                    f"{error} The index lost a record. Mend it: kraq check {path} --repair"
                ) from error
            self._report_drift(lost)
        self._index.results.settle(LOST, json.dumps([lost, changed]))


def _is_small(before: Sequence[str], after: Sequence[str]) -> bool:
    differing = len(set(before) ^ set(after))
    return differing <= _SMALL * len(before) and keeps_order(before, after)
