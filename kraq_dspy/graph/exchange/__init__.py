"""Other systems' files in and out: GraphRAG's tables, passages with triples, GraphML, JSON lines."""
