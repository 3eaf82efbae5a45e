"""Reads GraphRAG's output as our records: reports become summaries, text units chunks, covariates claims."""

import logging
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.graph.graphrag.communities import read_communities, read_summaries
from kraq_dspy.asset.graph.graphrag.elements import Elements
from kraq_dspy.asset.graph.graphrag.tables import Tables
from kraq_dspy.asset.graph.graphrag.texts import read_texts
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


def read_graphrag(folder: Path, acl_column: str = "") -> ImportedGraphRAG:
    """The GraphRAG project or output folder at `folder`, of version 2 or 3, as parquet or as JSON lines.

    Ids become our own. `acl_column` of the table of documents has the labels of who may read them; without a name it is
    "acl", where the table has one. Raises ExchangeError for a missing folder, table or column, naming what is there
    instead.
    """
    tables = Tables.at(folder)
    problems: Counter[str] = Counter()
    texts = read_texts(tables, problems, acl_column)

    elements = Elements(texts, problems)
    elements.read(tables)
    entities, relationships = elements.entities(), elements.relationships()

    communities, ids = read_communities(tables, elements.entity_ids, entities, relationships, texts.order(), problems)
    summaries = read_summaries(tables, ids, problems)

    inside = {entity_id for community in communities for entity_id in community.entity_ids}
    outside = sum(entity.id not in inside for entity in entities)
    if outside:
        problems["entities in no community, which levels leave out, as GraphRAG does"] = outside
    without_report = len(communities) - len(summaries)
    if without_report:
        problems["communities without a report"] = without_report

    messages = tuple(f"{problem}: {count}" for problem, count in sorted(problems.items()))
    for message in messages:
        logger.info("%s: %s", tables.folder.name, message)
    return ImportedGraphRAG(
        documents=tuple(texts.documents),
        chunks=tuple(texts.chunks),
        entities=entities,
        relationships=relationships,
        claims=elements.claims(),
        communities=communities,
        summaries=summaries,
        problems=messages,
    )
