"""The knowledge graph: resolved entities, relationships and claims, their communities, and the ways in and out."""
