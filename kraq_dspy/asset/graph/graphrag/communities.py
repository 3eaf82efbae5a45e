"""Reads GraphRAG's communities and their reports, which become summaries.

GraphRAG's levels are no partition: an entity outside the communities of level 0 stays outside.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kraq_dspy.asset.graph.graphrag.tables import Tables, text_of, texts_of, whole_number
from kraq_dspy.asset.graph.numbered_graph import NumberedGraph, part_of
from kraq_dspy.records import Community, Entity, Finding, Relationship, Summary, content_id

MODEL = "graphrag"
"""Who wrote the summaries, by name."""


@dataclass
class _Group:
    """A community as GraphRAG has it, under its number; `parent` is a number too."""

    level: int
    parent: int
    member_ids: list[str] = field(default_factory=list)  # GraphRAG's ids of entities
    entity_ids: frozenset[str] = frozenset()  # ours


def read_communities(
    tables: Tables,
    entity_ids: Mapping[str, str],
    entities: Sequence[Entity],
    relationships: Sequence[Relationship],
    order: Mapping[str, int],
    problems: Counter[str],
) -> tuple[tuple[Community, ...], dict[int, str]]:
    """The communities, broadest first, and their ids by GraphRAG's numbers.

    `entity_ids` are ours by GraphRAG's, `order` has the place of a chunk by its id.
    """
    groups = _groups(tables, entity_ids, entities, problems)
    ids, numbers = _ids(groups, problems)
    parents = {id: _parent(number, groups, ids, numbers) for id, number in numbers.items()}
    levels = _levels(parents, {id: groups[number].level for id, number in numbers.items()})
    moved = sum(levels[id] != groups[number].level for id, number in numbers.items())
    if moved:
        problems["communities moved to the level below their parent's"] = moved

    children: dict[str, list[str]] = defaultdict(list)
    for id, parent_id in parents.items():
        if parent_id is not None:
            children[parent_id].append(id)

    graph = NumberedGraph(entities, relationships)
    whole, node_of = graph.everything(), {entity.id: node for node, entity in enumerate(graph.entities)}
    communities = []
    for id, number in numbers.items():
        nodes = np.array(sorted(node_of[entity_id] for entity_id in groups[number].entity_ids))
        community = graph.community(part_of(nodes, whole), levels[id], parents[id], order)
        communities.append(replace(community, child_ids=tuple(sorted(children[id]))))

    _count_lost_members(communities, problems)
    communities.sort(key=lambda community: (community.level, -len(community.entity_ids), community.id))
    return tuple(communities), ids


def _groups(
    tables: Tables, entity_ids: Mapping[str, str], entities: Sequence[Entity], problems: Counter[str]
) -> dict[int, _Group]:
    """The communities by number, with the entities that are there."""
    groups = _groups_of_table(tables, problems)
    stand_for = _stand_for(entity_ids, groups.values())
    for group in groups.values():
        lost = sum(id not in entity_ids for id in group.member_ids)
        if lost:
            problems["references of communities to entities that do not exist, dropped"] += lost
        group.entity_ids = frozenset(stand_for[id] for id in group.member_ids if id in stand_for)
    return groups


def _groups_of_table(tables: Tables, problems: Counter[str]) -> dict[int, _Group]:
    groups: dict[int, _Group] = {}
    for row in tables.rows("communities", ["community", "level", "parent", "entity_ids"]):
        number = whole_number(row["community"])
        if number in groups:
            problems["communities with the number of an earlier one, merged with it"] += 1
        group = groups.setdefault(number, _Group(whole_number(row["level"]), whole_number(row["parent"])))
        group.member_ids += texts_of(row["entity_ids"])
    return groups


def _stand_for(entity_ids: Mapping[str, str], groups: Iterable[_Group]) -> dict[str, str]:
    """Our entity ids by those of GraphRAG; of titles that were merged, only the first that is in a community counts.

    The others would put one entity into several communities of a level.
    """
    used = {id for group in groups for id in group.member_ids}
    first: dict[str, str] = {}
    for id, entity_id in entity_ids.items():
        if id in used:
            first.setdefault(entity_id, id)
    return {id: entity_id for entity_id, id in first.items()}


def _ids(groups: Mapping[int, _Group], problems: Counter[str]) -> tuple[dict[int, str], dict[str, int]]:
    """Our ids by number, and by id the number of the broadest community with those entities."""
    ids: dict[int, str] = {}
    numbers: dict[str, int] = {}
    for number, group in sorted(groups.items(), key=lambda item: (item[1].level, item[0])):
        if not group.entity_ids:
            problems["communities without entities, left out"] += 1
            continue
        ids[number] = content_id("community", *sorted(group.entity_ids))
        if numbers.setdefault(ids[number], number) != number:
            problems["communities with the same entities as a broader one, merged with it"] += 1
    return ids, numbers


def _parent(
    number: int, groups: Mapping[int, _Group], ids: Mapping[int, str], numbers: Mapping[str, int]
) -> str | None:
    """The id of the nearest community above that holds other entities; None at the top or where the chain is broken."""
    visited = {number}
    above = groups[number].parent
    while above in ids and above not in visited:
        if ids[above] != ids[number]:
            holder = groups[numbers[ids[above]]]
            return ids[above] if holder.entity_ids > groups[number].entity_ids else None
        visited.add(above)
        above = groups[above].parent
    return None


def _levels(parents: Mapping[str, str | None], levels_there: Mapping[str, int]) -> dict[str, int]:
    """One below the parent's, so that no level has a hole; communities without a parent keep their own."""
    levels: dict[str, int] = {}
    for id in parents:
        chain = [id]
        while chain[-1] not in levels and (above := parents[chain[-1]]) is not None:
            chain.append(above)
        for each in reversed(chain):
            parent = parents[each]
            levels[each] = levels_there[each] if parent is None else levels[parent] + 1
    return levels


def _count_lost_members(communities: Sequence[Community], problems: Counter[str]) -> None:
    """Communities with entities that none of their sub-communities has: GraphRAG leaves singletons out."""
    by_id = {community.id: community for community in communities}
    for community in communities:
        below = {entity_id for child_id in community.child_ids for entity_id in by_id[child_id].entity_ids}
        if below and not below.issuperset(community.entity_ids):
            problems["communities with entities that none of their sub-communities has"] += 1


def read_summaries(tables: Tables, ids: Mapping[int, str], problems: Counter[str]) -> tuple[Summary, ...]:
    """One for each community that has a report, joined on `community`: the ids of reports repeat."""
    by_community: dict[str, Summary] = {}
    for row in tables.rows("community_reports", ["community", "summary"]):
        number = whole_number(row["community"])
        text = text_of(row.get("summary")).strip() or text_of(row.get("full_content")).strip()
        if number not in ids:
            problems["reports about a community that does not exist, left out"] += 1
            continue
        if not text:
            problems["reports without text, left out"] += 1
            continue

        findings = _findings(row.get("findings"))
        if not findings:
            problems["reports without findings"] += 1
        earlier = by_community.get(ids[number])
        if earlier is not None:
            problems[
                "reports about a community that has one already, of which the one with more findings was kept"
            ] += 1
        if earlier is None or len(findings) > len(earlier.findings):
            title = text_of(row.get("title")).strip()
            by_community[ids[number]] = Summary(ids[number], title, text, findings, MODEL)
    return tuple(sorted(by_community.values(), key=lambda summary: summary.community_id))


def _findings(value: Any) -> tuple[Finding, ...]:
    findings = []
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            finding = Finding(text_of(each.get("summary")).strip(), text_of(each.get("explanation")).strip())
            if finding.summary or finding.explanation:
                findings.append(finding)
    return tuple(findings)
