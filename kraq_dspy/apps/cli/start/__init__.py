"""Holds the first commands that one needs: a demonstration, an index, what it costs and what is in it."""
