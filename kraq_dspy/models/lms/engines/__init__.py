"""Runs models in this process, and asks every model through one kind of engine."""
