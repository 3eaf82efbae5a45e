"""Keeps what walking an index needs at hand: communities in brief, entities by name, who is mentioned where."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kraq_dspy.asset.store.index import Index
from kraq_dspy.records import Chunk, Community, Document, Entity, Question, Summary


@dataclass(frozen=True, slots=True)
class CommunityBrief:
    """A community as it stands in a list. `title` is its summary's, `question` its question's text; "" without one."""

    id: str
    level: int
    parent_id: str | None
    n_children: int
    n_entities: int
    n_passages: int
    title: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class EntityBrief:
    """An entity as it stands in a list, with its name as it is searched."""

    id: str
    name: str
    type: str
    degree: int
    n_chunks: int
    folded: str


class Atlas:
    """Read once from an index, part by part as each is asked for. Safe for threads: a part may be read twice."""

    def __init__(self, index: Index) -> None:
        self.index = index

    @cached_property
    def questions(self) -> list[Question]:
        """Of communities, broadest first; those marked as duplicates are left out."""
        listed = self.index.questions(source="kraq")
        return sorted(listed, key=lambda question: (question.level, -len(question.chunk_ids)))

    @cached_property
    def communities(self) -> dict[str, CommunityBrief]:
        """By id, broadest first and the largest of a level first."""
        titles = {summary.community_id: summary.title for summary in self.index.all(Summary)}
        questions = {each.community_id: each.text for each in self.questions}
        briefs = [
            CommunityBrief(
                each.id, each.level, each.parent_id, len(each.child_ids), len(each.entity_ids), len(each.chunk_ids),
                titles.get(each.id, ""), questions.get(each.id, ""),
            )
            for each in self.index.all(Community)
        ]  # fmt: skip
        briefs.sort(key=lambda brief: (brief.level, -brief.n_passages, -brief.n_entities, brief.id))
        return {brief.id: brief for brief in briefs}

    @cached_property
    def children(self) -> dict[str | None, list[CommunityBrief]]:
        """By the id of the broader community; None for those of the broadest level."""
        below: defaultdict[str | None, list[CommunityBrief]] = defaultdict(list)
        for brief in self.communities.values():
            below[brief.parent_id].append(brief)
        return dict(below)

    @cached_property
    def levels(self) -> list[dict[str, int]]:
        """For each level: how many communities and how many questions."""
        depth = 1 + max((brief.level for brief in self.communities.values()), default=-1)
        levels = [{"level": level, "communities": 0, "questions": 0} for level in range(depth)]
        for brief in self.communities.values():
            levels[brief.level]["communities"] += 1
        for question in self.questions:
            if 0 <= question.level < depth:
                levels[question.level]["questions"] += 1
        return levels

    @cached_property
    def entities(self) -> dict[str, EntityBrief]:
        """By id, the best connected first."""
        briefs = [
            EntityBrief(each.id, each.name, each.type, each.degree, len(each.chunk_ids), each.name.casefold())
            for each in self.index.all(Entity)
        ]
        briefs.sort(key=lambda brief: (-brief.degree, -brief.n_chunks, brief.name))
        return {brief.id: brief for brief in briefs}

    @cached_property
    def titles(self) -> dict[str, str]:
        """Of the documents by id, in their order."""
        return {document.id: document.title for document in self.index.all(Document)}

    @cached_property
    def communities_of(self) -> dict[str, tuple[str, ...]]:
        """The ids of the communities that an entity is in, broadest first, by the entity's id."""
        of: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for community in self.index.all(Community):
            for entity_id in community.entity_ids:
                of[entity_id].append((community.level, community.id))
        return {entity_id: tuple(each for _, each in sorted(places)) for entity_id, places in of.items()}

    @cached_property
    def mentioned_in(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """(entity id, spelling) of what a chunk mentions, by the chunk's id."""
        names: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for entity in self.index.all(Entity):
            for chunk_id in entity.chunk_ids:
                names[chunk_id].extend((entity.id, name) for name in entity.names)
        return {chunk_id: tuple(pairs) for chunk_id, pairs in names.items()}

    def path_to(self, community_id: str) -> list[CommunityBrief]:
        """From the broadest community down to the one above this."""
        path: list[CommunityBrief] = []
        parent = self.communities[community_id].parent_id
        while parent is not None and parent in self.communities:
            path.append(self.communities[parent])
            parent = path[-1].parent_id
        return path[::-1]

    def mentions(self, chunk: Chunk) -> list[dict[str, Any]]:
        """Where a chunk's text names its entities: `start` and `end` in characters, without overlaps."""
        return mentions(chunk.text, self.mentioned_in.get(chunk.id, ()))


def mentions(text: str, names: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Whole words only; of names within each other the longest."""
    ids = {name.casefold(): entity_id for entity_id, name in names if name.strip()}
    if not ids:
        return []
    longest_first = sorted(ids, key=lambda name: (-len(name), name))
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
    return [
        {"start": match.start(), "end": match.end(), "entity_id": ids[match[0].casefold()]}
        for match in pattern.finditer(text)
        if match[0].casefold() in ids
    ]
