"""Reads what Microsoft GraphRAG wrote: reports become summaries, text units chunks, covariates claims.

Every version's tables: `entities.parquet` and so on (2.x, 3.x), `create_final_entities.parquet` and so on (0.x, 1.x,
where `create_final_nodes` says which community an entity is in), and the same tables as JSON lines. Ids become our own.
GraphRAG's levels are no partition: entities outside the communities of level 0 stay outside.
"""

from kraq_dspy.asset.graph.exchange.graphrag_in.read import ImportedGraphRAG, read_graphrag

__all__ = ["ImportedGraphRAG", "read_graphrag"]
