"""Offers an index to agents by the Model Context Protocol."""
