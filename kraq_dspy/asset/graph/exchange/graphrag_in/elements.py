"""Reads entities, relationships and claims, with our ids."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from kraq_dspy.asset.graph.build import claim_of, join_descriptions
from kraq_dspy.asset.graph.exchange.graphrag_in.tables import Texts, listed_texts
from kraq_dspy.asset.graph.exchange.rows import Row, number_of, text_of, texts_of
from kraq_dspy.asset.graph.names import normalise_name
from kraq_dspy.asset.graph.resolve import entity_id_of
from kraq_dspy.records import Claim, Entity, Relationship, content_id


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
        self.ids_of_titles: dict[str, str] = {}
        self._nodes: dict[str, _Node] = {}
        self._edges: dict[tuple[str, str, str], _Edge] = {}
        self._chunk_ids = texts.chunk_ids
        self._order = texts.order()
        self._problems = problems

    def read_entities(self, rows: Iterable[Row]) -> None:
        for row in rows:
            title = text_of(row.get("title")) or text_of(row.get("name"))
            if not title.strip():
                self._problems["entities without a title were left out"] += 1
                continue
            key = normalise_name(title)
            if key in self._nodes:
                self._problems["entities share their normalised title with another one and were merged with it"] += 1
            node = self._nodes.setdefault(key, _Node())
            for name in dict.fromkeys([title, *listed_texts(row.get("names"))]):
                node.names[name] += 1 + (name == title)  # the title goes first
            if kind := text_of(row.get("type")).strip():
                node.types[kind] += 1
            if description := text_of(row.get("description")).strip():
                node.descriptions[description] = None
            node.chunk_ids |= self._known_chunks(row)
            id = text_of(row.get("id")) or title
            self.entity_ids[id] = entity_id_of(key)
            self.ids_of_titles.setdefault(title, id)

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
