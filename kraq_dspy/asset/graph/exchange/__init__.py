"""Reads and writes other systems' files: GraphRAG's tables, passages with triples, GraphML, JSON lines."""
