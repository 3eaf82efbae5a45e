"""GraphRAG's searches over a KRAQ index (Edge et al., 2024): what they need of the graph, and what they make of it."""
