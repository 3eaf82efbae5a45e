"""Names what a broad community is about where no model wrote its question.

A template asks after one heading or one sentence. For a community of many passages that is a detail of it, not what it
is about; its central names say more.
"""

from collections.abc import Iterable

from kraq_dspy.asset.store.index import Index
from kraq_dspy.records import Community, Entity, Question
from kraq_dspy.settings import EMBEDDED

BROAD = 8  # passages from which on a community without narrower ones inside is broad, too
CENTRAL = 3  # entities that make a topic


def is_broad(community: Community) -> bool:
    """Whether narrower communities are inside, or many passages.

    >>> is_broad(Community("m1", 0, None, (), ("e1",), (), ("c1",)))
    False
    >>> is_broad(Community("m1", 0, None, ("m2",), ("e1",), (), ("c1",)))
    True
    """
    return bool(community.child_ids) or len(community.chunk_ids) >= BROAD


def topic_of(members: Iterable[Entity]) -> str:
    """The names of the best connected of a community's entities; of equals, of those in more passages.

    >>> ada = Entity("e1", "Ada", "person", "", ("Ada",), ("c1",), degree=1)
    >>> byron = Entity("e2", "Byron", "person", "", ("Byron",), ("c1",), degree=2)
    >>> topic_of([ada, byron])
    'Byron, Ada'
    """
    central = sorted(members, key=lambda each: (-each.degree, -len(each.chunk_ids), each.name))
    return ", ".join(each.name for each in central[:CENTRAL])


def broad_by_template(index: Index, questions: Iterable[Question]) -> dict[str, Community]:
    """The broad communities that a template asked about, by the id of the question."""
    by_template = {each.id: each.community_id for each in questions if each.model == EMBEDDED and each.community_id}
    if not by_template:
        return {}
    broad = {community.id: community for community in index.all(Community) if is_broad(community)}
    return {id: broad[community_id] for id, community_id in by_template.items() if community_id in broad}


def topics(index: Index, questions: Iterable[Question]) -> dict[str, str]:
    """Return what to show in place of the questions that templates asked about broad communities,
    by the question's id.

    Questions that a model wrote, those of narrow communities and random ones are absent.
    """
    broad = broad_by_template(index, questions)
    if not broad:
        return {}
    member_ids = {entity_id for community in broad.values() for entity_id in community.entity_ids}
    entities = {entity.id: entity for entity in index.all(Entity) if entity.id in member_ids}

    named: dict[str, str] = {}
    for question_id, community in broad.items():
        topic = topic_of(entities[each] for each in community.entity_ids if each in entities)
        if topic:
            named[question_id] = topic
    return named
