"""Reads GraphRAG's entities, relationships and covariates; these become claims."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from kraq_dspy.asset.graph.build import join_descriptions
from kraq_dspy.asset.graph.graphrag.tables import Row, Tables, number_of, text_of, texts_of
from kraq_dspy.asset.graph.graphrag.texts import Texts
from kraq_dspy.asset.graph.names import normalise_name
from kraq_dspy.asset.graph.resolve import entity_id_of
from kraq_dspy.records import Claim, Entity, Relationship, content_id

NOBODY = frozenset({"", "NONE"})
"""What GraphRAG writes where a claim has no subject or no object."""


@dataclass
class _Node:
    """What is known of an entity under the key of its name."""

    names: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    descriptions: dict[str, None] = field(default_factory=dict)
    chunk_ids: set[str] = field(default_factory=set)


@dataclass
class _Edge:
    """What is known of a relationship between two keys."""

    predicate: str = ""
    descriptions: dict[str, None] = field(default_factory=dict)
    weight: float = 0.0
    chunk_ids: set[str] = field(default_factory=set)


class Elements:
    """Entities by the key of their title, what links them, and what is claimed of them.

    `entity_ids` are ours by GraphRAG's, and by titles where a table has no ids.
    """

    def __init__(self, texts: Texts, problems: Counter[str]) -> None:
        self.entity_ids: dict[str, str] = {}
        self._nodes: dict[str, _Node] = {}
        self._edges: dict[tuple[str, str, str], _Edge] = {}
        self._claims: dict[str, Claim] = {}
        self._chunk_ids = texts.chunk_ids
        self._order = texts.order()
        self._problems = problems

    def read(self, tables: Tables) -> None:
        for row in tables.rows("entities", ["title"]):
            self._add_entity(row)
        for row in tables.rows("relationships", ["source", "target"]):
            self._add_relationship(row)
        if tables.has("covariates"):
            for row in tables.rows("covariates", ["subject_id", "description"]):
                self._add_claim(row)

    def _add_entity(self, row: Row) -> None:
        title = text_of(row["title"])
        if not title.strip():
            self._problems["entities without a title, left out"] += 1
            return

        key = normalise_name(title)
        if key in self._nodes:
            self._problems["entities with the normalised title of another one, merged with it"] += 1
        node = self._nodes.setdefault(key, _Node())
        for name in dict.fromkeys([title, *texts_of(row.get("names"))]):
            node.names[name] += 2 if name == title else 1  # the title goes first
        if kind := text_of(row.get("type")).strip():
            node.types[kind] += 1
        if description := text_of(row.get("description")).strip():
            node.descriptions[description] = None
        node.chunk_ids |= self._known_chunks(row)
        self.entity_ids[text_of(row.get("id")) or title] = entity_id_of(key)

    def _add_relationship(self, row: Row) -> None:
        source, target = text_of(row["source"]), text_of(row["target"])
        if not source.strip() or not target.strip():
            self._problems["relationships without a source or a target, left out"] += 1
            return
        ends = normalise_name(source), normalise_name(target)
        if ends[0] == ends[1]:
            self._problems["relationships of an entity with itself, left out"] += 1
            return

        chunk_ids = self._known_chunks(row)
        description = text_of(row.get("description")).strip()
        for key, name in zip(ends, (source, target), strict=True):
            if key not in self._nodes:
                self._problems["ends of relationships that were no entities, added as entities"] += 1
                self._nodes[key] = _Node(Counter([name]), descriptions={description: None} if description else {})
            self._nodes[key].chunk_ids |= chunk_ids

        weight = number_of(row.get("weight"), 1.0)
        if weight <= 0:
            self._problems["relationships without a positive weight, counted once"] += 1
            weight = 1.0
        predicate = text_of(row.get("predicate"))  # GraphRAG has none; what we export does
        edge = self._edges.setdefault((*ends, predicate.casefold()), _Edge(predicate))
        edge.weight += weight
        edge.chunk_ids |= chunk_ids
        if description:
            edge.descriptions[description] = None

    def _add_claim(self, row: Row) -> None:
        subject, statement = text_of(row["subject_id"]).strip(), text_of(row["description"]).strip()
        if subject.upper() in NOBODY or not statement:
            self._problems["claims without a subject or a description, left out"] += 1
            return
        chunk_id = self._chunk_ids.get(text_of(row.get("text_unit_id")))
        if chunk_id is None:
            self._problems["claims of a text unit that does not exist, left out"] += 1
            return

        key = normalise_name(subject)
        if key not in self._nodes:
            self._problems["subjects of claims that were no entities, added as entities"] += 1
            self._nodes[key] = _Node(Counter([subject]), descriptions={statement: None})
        self._nodes[key].chunk_ids.add(chunk_id)
        object_id = self._object(row, key)
        parts = entity_id_of(key), statement, chunk_id
        id = content_id("claim", *parts, *([object_id] if object_id else []))
        self._claims.setdefault(id, Claim(id, *parts, object_id))

    def _object(self, row: Row, subject: str) -> str | None:
        """The id of the entity that a claim links its subject to; a name that is no entity is counted and left out."""
        name = text_of(row.get("object_id")).strip()
        if name.upper() in NOBODY or normalise_name(name) == subject:
            return None
        if normalise_name(name) not in self._nodes:
            self._problems["objects of claims that were no entities, left out"] += 1
            return None
        return entity_id_of(normalise_name(name))

    def entities(self) -> tuple[Entity, ...]:
        """The entities by id; an entity's degree is how many others it is linked to."""
        neighbours: dict[str, set[str]] = defaultdict(set)
        for source, target, _ in self._edges:
            neighbours[source].add(target)
            neighbours[target].add(source)

        records = []
        for key, node in self._nodes.items():
            names = tuple(name for name, _ in node.names.most_common())
            entity = Entity(
                id=entity_id_of(key),
                name=names[0],
                type=min(node.types, key=lambda kind: (-node.types[kind], kind), default=""),
                description=join_descriptions(node.descriptions),
                names=names,
                chunk_ids=self._in_order(node.chunk_ids),
                degree=len(neighbours[key]),
            )
            records.append(entity)
        return tuple(sorted(records, key=lambda entity: entity.id))

    def relationships(self) -> tuple[Relationship, ...]:
        """The relationships by id."""
        records = []
        for (source, target, predicate), edge in self._edges.items():
            ends = entity_id_of(source), entity_id_of(target)
            link = Relationship(
                id=content_id("relationship", *ends, predicate),
                source_id=ends[0],
                target_id=ends[1],
                predicate=edge.predicate,
                description=join_descriptions(edge.descriptions),
                weight=edge.weight,
                chunk_ids=self._in_order(edge.chunk_ids),
            )
            records.append(link)

        return tuple(sorted(records, key=lambda link: link.id))

    def claims(self) -> tuple[Claim, ...]:
        """The claims in the order of the table, each once."""
        return tuple(self._claims.values())

    def _known_chunks(self, row: Row) -> set[str]:
        ids = texts_of(row.get("text_unit_ids"))
        known = {self._chunk_ids[id] for id in ids if id in self._chunk_ids}
        lost = sum(id not in self._chunk_ids for id in ids)
        if lost:
            self._problems["references to text units that do not exist, dropped"] += lost
        return known

    def _in_order(self, chunk_ids: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(chunk_ids, key=self._order.__getitem__))
