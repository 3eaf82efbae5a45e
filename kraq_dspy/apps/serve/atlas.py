"""Turns an index into the JSON of the API: communities, entities, documents, passages, and the graph around one."""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from kraq_dspy._internal.recent import Recent
from kraq_dspy.apps.serve.refusals import not_found
from kraq_dspy.apps.serve.replies import Count, Edge, Entity as EntityView, Graph, Link, Node
from kraq_dspy.apps.views import (
    Community as CommunityView,
    CommunityBrief,
    CommunitySummary,
    EntityBrief,
    FoundPassage,
    Mention,
    Passage,
    Passages,
    Question as QuestionView,
)
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import UnknownRecordError
from kraq_dspy.indexing.prepare.graph import IndexGraph
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Hit, Question, Summary
from kraq_dspy.workspace.topics import topics

Json = dict[str, Any]

FIRST, MOST = 20, 200
"""Passages that come with a record; entities, links or questions of one at most."""
EDGES = 4000
MENTIONS = 2000
"""Passages whose mentions are kept; to find those of one takes as long as a search."""


class Atlas:
    """Read once from an index, part by part as each is asked for. Safe for threads: a part may be read twice."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._mentions = Recent[str, list[Mention]](MENTIONS)

    @cached_property
    def questions(self) -> list[Question]:
        """The communities' questions stand here, broadest first; those marked as duplicates are
        left out."""
        listed = self.index.questions(source="kraq")
        return sorted(listed, key=lambda question: (question.level, -len(question.chunk_ids)))

    @cached_property
    def topics(self) -> dict[str, str]:
        """What stands for the questions that templates asked about broad communities, by the question's id."""
        return topics(self.index, self.questions)

    @cached_property
    def asked(self) -> dict[str | None, Question]:
        """The question of each community, by the community's id."""
        return {each.community_id: each for each in self.questions}

    @cached_property
    def communities(self) -> dict[str, CommunityBrief]:
        """The communities in brief, by id, broadest first and the largest of a level first."""
        titles = {summary.community_id: summary.title for summary in self.index.all(Summary)}
        asked = self.asked
        topic_of = {community_id: self.topics.get(each.id, "") for community_id, each in asked.items()}

        briefs = [
            CommunityBrief.of_record(
                each,
                title=titles.get(each.id, ""),
                question=asked[each.id].text if each.id in asked else "",
                topic=topic_of.get(each.id, ""),
                n_answering=len(asked[each.id].evidence) if each.id in asked else 0,
            )
            for each in self.index.all(Community)
        ]

        briefs.sort(key=lambda brief: (brief.level, -brief.n_passages, -brief.n_entities, brief.id))
        return {brief.id: brief for brief in briefs}

    @cached_property
    def children(self) -> dict[str | None, list[CommunityBrief]]:
        """The communities in brief, by the id of the broader one; None for those of the broadest
        level."""
        below: defaultdict[str | None, list[CommunityBrief]] = defaultdict(list)
        for brief in self.communities.values():
            below[brief.parent_id].append(brief)
        return dict(below)

    @cached_property
    def levels(self) -> list[Count]:
        """Count for each level how many communities and how many questions."""
        depth = 1 + max((brief.level for brief in self.communities.values()), default=-1)
        levels = [Count(level=level, communities=0, questions=0) for level in range(depth)]
        for brief in self.communities.values():
            levels[brief.level].communities += 1
        for question in self.questions:
            if 0 <= question.level < depth:
                levels[question.level].questions += 1
        return levels

    @cached_property
    def entities(self) -> dict[str, EntityBrief]:
        """The entities in brief, by id, the best connected first."""
        briefs = [EntityBrief.of_record(each) for each in self.index.all(Entity)]
        briefs.sort(key=lambda brief: (-brief.degree, -brief.n_passages, brief.name))
        return {brief.id: brief for brief in briefs}

    @cached_property
    def titles(self) -> dict[str, str]:
        """The documents' titles by id, in their order."""
        return {document.id: document.title for document in self.index.all(Document)}

    @cached_property
    def communities_of(self) -> dict[str, list[str]]:
        """The ids of the communities that an entity is in, broadest first, by the entity's id."""
        ids: defaultdict[str, list[str]] = defaultdict(list)
        for community in sorted(self.index.all(Community), key=lambda each: (each.level, each.id)):
            for entity_id in community.entity_ids:
                ids[entity_id].append(community.id)
        return dict(ids)

    @cached_property
    def mentioned_in(self) -> dict[str, list[tuple[str, str]]]:
        """(entity id, spelling) of what a chunk mentions, by the chunk's id."""
        names: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for entity in self.index.all(Entity):
            for chunk_id in entity.chunk_ids:
                names[chunk_id].extend((entity.id, name) for name in entity.names)
        return dict(names)

    def mentions(self, chunk: Chunk) -> list[Mention]:
        """Tell where a chunk's text names its entities: `start` and `end` in characters (Unicode
        code points), without overlaps. Whole words only; of names within each other the longest."""
        [found] = self._mentions.of([chunk.id], lambda _: [self._find_mentions(chunk)])
        return found

    def _find_mentions(self, chunk: Chunk) -> list[Mention]:
        named = self.mentioned_in.get(chunk.id, ())
        ids = {name.casefold(): entity_id for entity_id, name in named if name.strip()}
        if not ids:
            return []
        longest_first = sorted(ids, key=lambda name: (-len(name), name))
        pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
        return [
            Mention(start=match.start(), end=match.end(), entity_id=ids[match[0].casefold()])
            for match in pattern.finditer(chunk.text)
            if match[0].casefold() in ids
        ]

    def passage(self, chunk: Chunk) -> Passage:
        return Passage.of(chunk, self._title_of(chunk), self.mentions(chunk))

    def found(self, hit: Hit) -> FoundPassage:
        chunk, score = hit.chunk, float(hit.score)
        return FoundPassage.of(
            chunk, self._title_of(chunk), self.mentions(chunk), score=score, query=hit.query, why=hit.why
        )

    def _title_of(self, chunk: Chunk) -> str:
        return chunk.title or self.titles.get(chunk.document_id, "")

    def passages(self, chunk_ids: Sequence[str], offset: int = 0, limit: int = FIRST) -> Passages:
        """Return those that are still there: an index may change while it is read."""
        some = chunk_ids[offset : offset + limit]
        try:
            chunks = self.index.get(Chunk, some)
        except UnknownRecordError:
            present = set(self.index.ids(Chunk))
            chunks = self.index.get(Chunk, [each for each in some if each in present])
        return Passages(total=len(chunk_ids), offset=offset, items=list(map(self.passage, chunks)))

    def record(self, kind: type[Any], record_id: str) -> Any:
        """Raises RequestError for an id that is not there."""
        try:
            return self.index.get(kind, [record_id])[0]
        except UnknownRecordError:
            raise not_found(kind.__name__.lower(), record_id) from None

    def community(self, community_id: str) -> CommunityView:
        """Return what stands above and below it, its summary, entities and first passages."""
        community = self.record(Community, community_id)
        brief = self.communities.get(community_id)
        if brief is None:
            raise not_found("community", community_id)

        path: list[CommunityBrief] = []
        above = brief.parent_id
        while above is not None and above in self.communities:
            path.insert(0, self.communities[above])
            above = path[0].parent_id

        try:
            [summary] = self.index.get(Summary, [community_id])
        except UnknownRecordError:  # too small for one
            summary = None

        return CommunityView(
            **dict(brief),
            path=path,
            children=self.children.get(community_id, []),
            summary=None if summary is None else CommunitySummary.of_record(summary),
            entities=[self.entities[each] for each in self._best_connected(community.entity_ids)[:MOST]],
            evidence=self.passages(self.asked[community_id].evidence if community_id in self.asked else ()),
            passages=self.passages(community.chunk_ids),
        )

    def entity(self, entity_id: str) -> EntityView:
        """Its links, the strongest first (`to`: whether one leads from it to the other), claims, communities and first
        passages."""
        entity = self.record(Entity, entity_id)
        links = []
        for link in sorted(IndexGraph(self.index).links([entity_id]), key=lambda link: -link.weight):
            is_outgoing = link.source_id == entity_id
            other = link.target_id if is_outgoing else link.source_id
            if other in self.entities:
                links.append(Link.of_record(link, to=is_outgoing, entity=self.entities[other]))

        return EntityView.of_record(
            entity,
            claims=[claim.statement for claim in self.index.all(Claim, entity_id=entity_id)],
            links=links[:MOST],
            communities=[self.communities[each] for each in self.communities_of.get(entity_id, ())],
            passages=self.passages(entity.chunk_ids),
        )

    def document(self, document_id: str) -> Json:
        """The whole text, with passages and mentions as spans of it, and the narrowest questions that it answers."""
        document = self.record(Document, document_id)
        passages = []
        for chunk in sorted(self.index.all(Chunk, document_id=document_id), key=lambda chunk: chunk.position):
            mentions = [
                Mention(start=each.start + chunk.start, end=each.end + chunk.start, entity_id=each.entity_id)
                for each in self.mentions(chunk)
            ]
            span = {"id": chunk.id, "start": chunk.start, "end": chunk.end, "position": chunk.position}
            passages.append({**span, "mentions": mentions})

        own = {passage["id"] for passage in passages}
        questions = [each for each in reversed(self.questions) if not own.isdisjoint(each.evidence)]
        return {
            "id": document.id,
            "title": document.title,
            "metadata": dict(document.metadata),
            "text": document.text,
            "left_out": document.left_out,
            "passages": passages,
            "questions": list(map(self.question, questions[:MOST])),
        }

    def graph(self, inside: Sequence[str], *, limit: int) -> Graph:
        """The entities `inside` and what is next to them, at most `limit` nodes, the best connected first; every link
        among them, strongest first."""
        core, graph = set(inside), IndexGraph(self.index)
        links = {link.id: link for link in graph.links(inside)}
        around: defaultdict[str, float] = defaultdict(float)
        for link in links.values():
            for end in {link.source_id, link.target_id} - core:
                around[end] += link.weight

        inner = self._best_connected(inside)
        outer = sorted(self._best_connected(around), key=lambda each: -around[each])
        nodes = (inner + outer)[:limit]
        if len(inside) == 1:  # the links among the neighbours of one entity show how they hang together
            links |= {link.id: link for link in graph.links(nodes[1:60])}
        shown = set(nodes)
        edges = [link for link in links.values() if {link.source_id, link.target_id} <= shown]
        edges.sort(key=lambda link: -link.weight)
        return Graph(
            nodes=[Node(**dict(self.entities[each]), inside=each in core) for each in nodes],
            edges=[Edge.of_record(link, source=link.source_id, target=link.target_id) for link in edges[:EDGES]],
            n_left_out=len(inner) + len(outer) - len(nodes),
        )

    def _best_connected(self, entity_ids: Any) -> list[str]:
        """Return those of them that are there, in this order."""
        present = [each for each in entity_ids if each in self.entities]
        return sorted(present, key=lambda each: (-self.entities[each].degree, each))

    def question(self, question: Question) -> QuestionView:
        return QuestionView.of(question, self.topics.get(question.id, ""))
