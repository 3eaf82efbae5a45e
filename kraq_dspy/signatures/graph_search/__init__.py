"""Holds the steps of GraphRAG's searches."""
