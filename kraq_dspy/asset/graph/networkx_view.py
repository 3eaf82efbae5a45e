"""Shows the graph as networkx has it, for looking around and its algorithms, and writes it as GraphML for others."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.records import Claim, Community, Entity, Relationship

if TYPE_CHECKING:
    import networkx as nx

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SEPARATOR = " | "  # between the values of a list


def to_networkx(
    entities: Iterable[Entity],
    relationships: Iterable[Relationship],
    claims: Iterable[Claim] = (),
    communities: Iterable[Community] = (),
) -> "nx.MultiDiGraph":
    """The graph with entities as nodes by id, relationships as edges keyed by id, with the records' fields as
    attributes.

    A node also has `claims`, the statements about it, and `communities`, the ids of its communities, broadest first;
    an edge `claims`, the statements about what links its two nodes.

    >>> to_networkx([Entity("a", "Ada", "person", "", ("Ada",), (), 0)], []).nodes["a"]["name"]
    'Ada'
    """
    import networkx as nx

    statements: dict[str | frozenset[str] | None, list[str]] = defaultdict(list)
    for claim in claims:
        statements[claim.entity_id].append(claim.statement)
        statements[claim.pair].append(claim.statement)
    homes: dict[str, list[str]] = defaultdict(list)
    for community in sorted(communities, key=lambda community: community.level):
        for entity_id in community.entity_ids:
            homes[entity_id].append(community.id)
    graph = nx.MultiDiGraph()
    for entity in entities:
        claimed, inside = tuple(statements.get(entity.id, ())), tuple(homes.get(entity.id, ()))
        graph.add_node(entity.id, **_fields(entity, "id"), claims=claimed, communities=inside)
    for link in relationships:
        ends = link.source_id, link.target_id
        own = _fields(link, "id", "source_id", "target_id")
        graph.add_edge(*ends, key=link.id, **own, claims=tuple(statements.get(frozenset(ends), ())))
    return graph


def write_graphml(
    path: Path,
    entities: Iterable[Entity],
    relationships: Iterable[Relationship],
    communities: Iterable[Community] = (),
    claims: Iterable[Claim] = (),
) -> Path:
    """The file `path`, which Gephi, yEd, Cytoscape and networkx read; it appears, or is replaced, when it is whole.

    Nodes and edges have the ids and attributes of `to_networkx`, and a node the id of its deepest community as
    `community`. Lists are joined by " | ", empty attributes left out, and characters that XML does not have dropped.
    """
    import networkx as nx

    graph = to_networkx(entities, relationships, claims, communities)
    for _, node in graph.nodes(data=True):
        node["community"] = node["communities"][-1] if node["communities"] else ""

    for part in (graph.nodes, graph.edges):
        for *_, attributes in part(data=True):
            plain = {name: _plain(value) for name, value in attributes.items()}
            attributes.clear()
            attributes.update({name: value for name, value in plain.items() if value != ""})

    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as draft:
        nx.write_graphml_xml(graph, draft)
    return path


def _fields(record: Entity | Relationship, *but: str) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record) if field.name not in but}


def _plain(value: Any) -> str | int | float:
    if isinstance(value, int | float):
        return value
    text = _SEPARATOR.join(value) if isinstance(value, tuple) else str(value)
    return _NOT_XML.sub("", text)
