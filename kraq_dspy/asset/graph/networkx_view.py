"""Shows the graph as networkx has it: for looking around and its algorithms, not for large graphs."""

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kraq_dspy.asset.graph.elements import statements_of
from kraq_dspy.records import Claim, Community, Entity, Relationship

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(
    entities: Iterable[Entity],
    relationships: Iterable[Relationship],
    claims: Iterable[Claim] = (),
    communities: Iterable[Community] = (),
) -> "nx.MultiDiGraph":
    """Entities as nodes by id, relationships as edges keyed by id, with the records' fields as attributes.

    A node also has `claims`, the statements about it, and `communities`, the ids of its communities, broadest first;
    an edge `claims`, the statements about what links its two nodes.
    """
    import networkx as nx

    statements = statements_of(claims)
    homes: dict[str, list[str]] = defaultdict(list)
    for community in sorted(communities, key=lambda community: community.level):
        for entity_id in community.entity_ids:
            homes[entity_id].append(community.id)
    graph = nx.MultiDiGraph()
    for entity in entities:
        graph.add_node(
            entity.id,
            name=entity.name,
            type=entity.type,
            description=entity.description,
            names=entity.names,
            chunk_ids=entity.chunk_ids,
            degree=entity.degree,
            claims=tuple(statements.get(entity.id, ())),
            communities=tuple(homes.get(entity.id, ())),
        )
    for link in relationships:
        graph.add_edge(
            link.source_id,
            link.target_id,
            key=link.id,
            predicate=link.predicate,
            description=link.description,
            weight=link.weight,
            chunk_ids=link.chunk_ids,
            claims=tuple(statements.get(frozenset((link.source_id, link.target_id)), ())),
        )
    return graph
