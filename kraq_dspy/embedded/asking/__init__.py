"""Asks the questions that texts answer, by templates and headings, without a model."""
