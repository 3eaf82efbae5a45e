"""Holds what an index is made of and kept in: corpus, graph, store."""
