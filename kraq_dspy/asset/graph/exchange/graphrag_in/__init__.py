"""Reads what Microsoft GraphRAG wrote: reports become summaries, text units chunks, covariates claims.

Every version's tables: `entities.parquet` and so on (2.x, 3.x), `create_final_entities.parquet` and so on (0.x, 1.x,
where `create_final_nodes` says which community an entity is in), and the same tables as JSON lines. Ids become our own.
GraphRAG's levels are no partition: entities outside the communities of level 0 stay outside.
"""

import logging
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.graph.exchange.graphrag_in.communities import read_communities, read_summaries
from kraq_dspy.asset.graph.exchange.graphrag_in.elements import GraphRecords
from kraq_dspy.asset.graph.exchange.graphrag_in.tables import Tables, Texts
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Relationship, Summary

logger = logging.getLogger(__name__)


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
    graph.read_entities(tables.rows("entities", [("title", "name")]))
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
