"""Reads what Microsoft GraphRAG wrote: reports become summaries, text units chunks, covariates claims.

The tables are those of versions 2 and 3 (`entities.parquet` and so on), or the same as JSON lines. Ids become our own.
GraphRAG's levels are no partition: entities outside the communities of level 0 stay outside.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kraq_dspy.asset.graph.build import claim_of, join_descriptions
from kraq_dspy.asset.graph.exchange.rows import Row, Tables, Texts, number_of, text_of, texts_of
from kraq_dspy.asset.graph.names import normalise_name
from kraq_dspy.asset.graph.resolve import entity_id_of
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Finding, Relationship, Summary, content_id

logger = logging.getLogger(__name__)

MODEL = "graphrag"  # of imported summaries


@dataclass(frozen=True)
class ImportedGraphRAG:
    """The tables as our records. `problems` says what was wrong with them and what became of it, with counts."""

    documents: tuple[Document, ...]
    chunks: tuple[Chunk, ...]
    entities: tuple[Entity, ...]
    relationships: tuple[Relationship, ...]
    claims: tuple[Claim, ...]
    communities: tuple[Community, ...]
    summaries: tuple[Summary, ...]
    problems: tuple[str, ...]


def read_graphrag(folder: Path) -> ImportedGraphRAG:
    """The GraphRAG project or output folder at `folder`.

    Raises ExchangeError for a missing folder, table or column, naming what is there instead.
    """
    tables = Tables.at(folder)
    problems: Counter[str] = Counter()
    texts = Texts.of(tables, problems)
    graph = GraphRecords(texts, problems)
    graph.read_entities(tables.rows("entities", ["title"]))
    graph.read_relationships(tables.rows("relationships", ["source", "target"]))
    if tables.has("covariates"):
        graph.read_claims(tables.rows("covariates", ["subject_id", "description"]))
    entities, relationships = graph.entities(), graph.relationships()
    communities, records_of = read_communities(tables, graph, entities, relationships, texts.order(), problems)
    summaries = read_summaries(tables, records_of, problems)
    inside = {entity_id for community in communities for entity_id in community.entity_ids}
    outside = sum(entity.id not in inside for entity in entities)
    if outside:
        problems["entities belong to no community: GraphRAG leaves them out, and so do levels here"] = outside
    bare = len({community.id for community in communities} - {summary.community_id for summary in summaries})
    if bare:
        problems["communities have no report"] = bare
    messages = tuple(f"{count} {problem}" for problem, count in sorted(problems.items()))
    for problem in messages:
        logger.warning("%s: %s", tables.folder.name, problem)
    return ImportedGraphRAG(
        documents=tuple(texts.documents),
        chunks=tuple(texts.chunks),
        entities=entities,
        relationships=relationships,
        claims=tuple(graph.claims),
        communities=communities,
        summaries=summaries,
        problems=messages,
    )


@dataclass
class _Node:
    names: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    descriptions: dict[str, None] = field(default_factory=dict)
    chunk_ids: set[str] = field(default_factory=set)


@dataclass
class _Edge:
    predicate: str = ""
    descriptions: dict[str, None] = field(default_factory=dict)
    weight: float = 0.0
    chunk_ids: set[str] = field(default_factory=set)


class GraphRecords:
    """Entities by the key of their title, and what links them; `entity_ids` are ours by GraphRAG's."""

    def __init__(self, texts: Texts, problems: Counter[str]) -> None:
        self.claims: list[Claim] = []
        self.entity_ids: dict[str, str] = {}
        self._nodes: dict[str, _Node] = {}
        self._edges: dict[tuple[str, str, str], _Edge] = {}
        self._chunk_ids = texts.chunk_ids
        self._order = texts.order()
        self._problems = problems

    def read_entities(self, rows: Iterable[Row]) -> None:
        for row in rows:
            title = text_of(row.get("title"))
            if not title.strip():
                self._problems["entities without a title were left out"] += 1
                continue
            key = normalise_name(title)
            if key in self._nodes:
                self._problems["entities share their normalised title with another one and were merged with it"] += 1
            node = self._nodes.setdefault(key, _Node())
            for name in dict.fromkeys([title, *texts_of(row.get("names"))]):
                node.names[name] += 1 + (name == title)  # the title goes first
            if kind := text_of(row.get("type")).strip():
                node.types[kind] += 1
            if description := text_of(row.get("description")).strip():
                node.descriptions[description] = None
            node.chunk_ids |= self._known_chunks(row)
            self.entity_ids[text_of(row.get("id")) or title] = entity_id_of(key)

    def read_relationships(self, rows: Iterable[Row]) -> None:
        for row in rows:
            source, target = text_of(row["source"]), text_of(row["target"])
            if not source.strip() or not target.strip():
                self._problems["relationships without a source or a target were left out"] += 1
                continue
            keys = normalise_name(source), normalise_name(target)
            if keys[0] == keys[1]:
                self._problems["relationships of an entity with itself were left out"] += 1
                continue
            chunk_ids = self._known_chunks(row)
            description = text_of(row.get("description")).strip()
            for key, name in zip(keys, (source, target), strict=True):
                if key not in self._nodes:
                    self._problems["ends of relationships were no entities and were made some"] += 1
                    self._nodes[key] = _Node(Counter([name]), descriptions={description: None} if description else {})
                self._nodes[key].chunk_ids |= chunk_ids
            predicate = text_of(row.get("predicate"))
            edge = self._edges.setdefault((*keys, predicate.casefold()), _Edge(predicate))
            weight = number_of(row.get("weight"), 1.0)
            if weight <= 0:
                self._problems["relationships had no positive weight and count once"] += 1
                weight = 1.0
            edge.weight += weight
            edge.chunk_ids |= chunk_ids
            if description:
                edge.descriptions[description] = None

    def read_claims(self, rows: Iterable[Row]) -> None:
        known: set[str] = set()
        for row in rows:
            subject, statement = text_of(row["subject_id"]).strip(), text_of(row["description"]).strip()
            if not subject or subject.upper() == "NONE" or not statement:
                self._problems["claims without a subject or a description were left out"] += 1
                continue
            chunk_id = self._chunk_ids.get(text_of(row.get("text_unit_id")))
            if chunk_id is None:
                self._problems["claims name a text unit that does not exist and were left out"] += 1
                continue
            key = normalise_name(subject)
            if key not in self._nodes:
                self._problems["subjects of claims were no entities and were made some"] += 1
                self._nodes[key] = _Node(Counter([subject]), descriptions={statement: None})
            self._nodes[key].chunk_ids.add(chunk_id)
            claim = claim_of(entity_id_of(key), statement, chunk_id, self._object(row, key))
            if claim.id not in known:
                known.add(claim.id)
                self.claims.append(claim)

    def _object(self, row: Row, subject: str) -> str | None:
        """The id of the entity that a claim links its subject to; a name that is no entity is counted and left out."""
        name = text_of(row.get("object_id")).strip()
        if not name or name.upper() == "NONE" or (key := normalise_name(name)) == subject:
            return None
        if key not in self._nodes:
            self._problems["objects of claims were no entities and were left out"] += 1
            return None
        return entity_id_of(key)

    def entities(self) -> tuple[Entity, ...]:
        neighbours: dict[str, set[str]] = defaultdict(set)
        for source, target, _ in self._edges:
            neighbours[source].add(target)
            neighbours[target].add(source)
        records = []
        for key, node in self._nodes.items():
            names = tuple(name for name, _ in node.names.most_common())
            records.append(
                Entity(
                    id=entity_id_of(key),
                    name=names[0],
                    type=min(node.types, key=lambda kind: (-node.types[kind], kind), default=""),
                    description=join_descriptions(node.descriptions),
                    names=names,
                    chunk_ids=self._in_order(node.chunk_ids),
                    degree=len(neighbours[key]),
                )
            )
        return tuple(sorted(records, key=lambda entity: entity.id))

    def relationships(self) -> tuple[Relationship, ...]:
        records = []
        for (source, target, predicate), edge in self._edges.items():
            ends = entity_id_of(source), entity_id_of(target)
            records.append(
                Relationship(
                    id=content_id("relationship", *ends, predicate),
                    source_id=ends[0],
                    target_id=ends[1],
                    predicate=edge.predicate,
                    description=join_descriptions(edge.descriptions),
                    weight=edge.weight,
                    chunk_ids=self._in_order(edge.chunk_ids),
                )
            )
        return tuple(sorted(records, key=lambda link: link.id))

    def _known_chunks(self, row: Row) -> set[str]:
        ids = texts_of(row.get("text_unit_ids"))
        known = {self._chunk_ids[id] for id in ids if id in self._chunk_ids}
        lost = sum(id not in self._chunk_ids for id in ids)
        if lost:
            self._problems["references to text units that do not exist were dropped"] += lost
        return known

    def _in_order(self, chunk_ids: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(chunk_ids, key=self._order.__getitem__))


@dataclass
class _Group:
    """A community as GraphRAG has it; `parent` is its number, or -1 at the top."""

    level: int
    parent: int
    entity_ids: set[str]


def read_communities(
    tables: Tables,
    graph: GraphRecords,
    entities: Sequence[Entity],
    relationships: Sequence[Relationship],
    order: Mapping[str, int],
    problems: Counter[str],
) -> tuple[tuple[Community, ...], dict[int, str]]:
    """The communities, and their ids by GraphRAG's numbers."""
    groups = _groups(tables, graph, problems)
    ids: dict[int, str] = {}
    kept: dict[str, int] = {}  # numbers by community id; the broadest of those with the same entities
    for number, group in sorted(groups.items(), key=lambda item: (item[1].level, item[0])):
        if not group.entity_ids:
            problems["communities without entities were left out"] += 1
            continue
        ids[number] = content_id("community", *sorted(group.entity_ids))
        if kept.setdefault(ids[number], number) != number:
            problems["communities have the same entities as a broader one and were merged with it"] += 1
    parents = {id: _parent(number, groups, ids, kept) for id, number in kept.items()}
    children: dict[str, list[str]] = defaultdict(list)
    for id, parent_id in parents.items():
        if parent_id:
            children[parent_id].append(id)
    levels = _levels(parents, {id: groups[number].level for id, number in kept.items()})
    moved = sum(levels[id] != groups[number].level for id, number in kept.items())
    if moved:
        problems["communities were moved to the level below their parent's"] = moved
    by_id = {entity.id: entity for entity in entities}
    links_of: dict[str, list[Relationship]] = defaultdict(list)
    for link in relationships:
        links_of[link.source_id].append(link)
    communities = []
    for id, number in kept.items():
        inside = groups[number].entity_ids
        links = sorted(
            (link for entity_id in inside for link in links_of[entity_id] if link.target_id in inside),
            key=lambda link: link.id,
        )
        sources: Iterable[Relationship | Entity] = links or [by_id[entity_id] for entity_id in inside]
        chunk_ids = {chunk_id for record in sources for chunk_id in record.chunk_ids}
        communities.append(
            Community(
                id=id,
                level=levels[id],
                parent_id=parents[id],
                child_ids=tuple(sorted(children[id])),
                entity_ids=tuple(sorted(inside)),
                relationship_ids=tuple(link.id for link in links),
                chunk_ids=tuple(sorted(chunk_ids, key=order.__getitem__)),
            )
        )
    sizes = {community.id: len(community.entity_ids) for community in communities}
    short = sum(bool(c.child_ids) and sum(sizes[child] for child in c.child_ids) < sizes[c.id] for c in communities)
    if short:
        problems["communities have entities that none of their sub-communities has"] = short
    communities.sort(key=lambda c: (c.level, -len(c.entity_ids), c.id))
    return tuple(communities), ids


def _groups(tables: Tables, graph: GraphRecords, problems: Counter[str]) -> dict[int, _Group]:
    groups: dict[int, _Group] = {}
    members: dict[int, list[str]] = defaultdict(list)  # GraphRAG's ids
    for row in tables.rows("communities", ["community", "level", "parent", "entity_ids"]):
        number, level, parent = (int(number_of(row[name], -1)) for name in ("community", "level", "parent"))
        if number in groups:
            problems["communities have the number of an earlier one and were merged with it"] += 1
        groups.setdefault(number, _Group(level, parent, set()))
        members[number] += texts_of(row["entity_ids"])
    stand_for = _stand_for(graph.entity_ids, members)
    for number, ids in members.items():
        lost = sum(id not in graph.entity_ids for id in ids)
        if lost:
            problems["references of communities to entities that do not exist were dropped"] += lost
        groups[number].entity_ids = {stand_for[id] for id in ids if id in stand_for}
    return groups


def _stand_for(entity_ids: Mapping[str, str], members: Mapping[int, Sequence[str]]) -> dict[str, str]:
    """Our entity ids by those of GraphRAG; of titles that were merged, only the first that is in a community counts.

    The others would put one entity into several communities of a level.
    """
    used = {id for ids in members.values() for id in ids}
    first: dict[str, str] = {}
    for id, entity_id in entity_ids.items():
        if id in used:
            first.setdefault(entity_id, id)
    return {id: entity_id for entity_id, id in first.items()}


def _parent(number: int, groups: Mapping[int, _Group], ids: Mapping[int, str], kept: Mapping[str, int]) -> str | None:
    """The id of the nearest community above that holds other entities; None at the top or where the chain is broken."""
    own = ids[number]
    visited = {number}
    above = groups[number].parent
    while above in ids and above not in visited:
        if ids[above] != own:
            holder = groups[kept[ids[above]]]
            return ids[above] if holder.entity_ids > groups[number].entity_ids else None
        visited.add(above)
        above = groups[above].parent
    return None


def _levels(parents: Mapping[str, str | None], file_levels: Mapping[str, int]) -> dict[str, int]:
    """One below the parent's, so that no level has a hole; communities without a parent keep their own."""
    levels: dict[str, int] = {}
    for id in parents:
        chain = [id]
        while chain[-1] not in levels and (above := parents[chain[-1]]) is not None:
            chain.append(above)
        for each in reversed(chain):
            parent = parents[each]
            levels[each] = file_levels[each] if parent is None else levels[parent] + 1
    return levels


def read_summaries(tables: Tables, ids: Mapping[int, str], problems: Counter[str]) -> tuple[Summary, ...]:
    """One for each community that has a report, joined on `community`: the ids of reports repeat."""
    by_community: dict[str, Summary] = {}
    for row in tables.rows("community_reports", ["community", "summary"]):
        number = int(number_of(row["community"], -1))
        text = text_of(row.get("summary")).strip() or text_of(row.get("full_content")).strip()
        if number not in ids:
            problems["reports are about a community that does not exist and were left out"] += 1
            continue
        if not text:
            problems["reports without text were left out"] += 1
            continue
        findings = _findings(row.get("findings"))
        if not findings:
            problems["reports have no findings"] += 1
        summary = Summary(ids[number], text_of(row.get("title")).strip(), text, findings, MODEL)
        if summary.community_id in by_community:
            problems["reports are about a community that has one already; the one with more findings was kept"] += 1
            if len(by_community[summary.community_id].findings) >= len(findings):
                continue
        by_community[summary.community_id] = summary
    return tuple(sorted(by_community.values(), key=lambda summary: summary.community_id))


def _findings(value: Any) -> tuple[Finding, ...]:
    rows = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    findings = (
        Finding(text_of(each.get("summary")).strip(), text_of(each.get("explanation")).strip()) for each in rows
    )
    return tuple(finding for finding in findings if finding.summary or finding.explanation)
