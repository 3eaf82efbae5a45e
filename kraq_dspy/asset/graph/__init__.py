"""Builds the knowledge graph: resolved entities, relationships and claims, their communities, ways in and out."""
