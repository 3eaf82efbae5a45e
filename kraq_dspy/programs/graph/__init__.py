"""Searches a KRAQ index as GraphRAG does (Edge et al., 2024): what that needs of the graph, and makes of it."""
