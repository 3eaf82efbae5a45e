"""Holds the steps of retrievers that ask a model: rewriting, and summaries of clusters."""
