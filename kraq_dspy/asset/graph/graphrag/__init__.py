"""Reads what Microsoft GraphRAG wrote, versions 1 to 3: `read.read_graphrag`."""
