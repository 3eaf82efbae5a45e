"""Holds the steps of QA search and of its catalogue."""
