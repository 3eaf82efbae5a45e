"""The steps of GraphRAG's searches."""
