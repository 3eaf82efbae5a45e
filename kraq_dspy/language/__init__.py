"""Reads text by rules, without a model: its sentences, names and headings, and the questions that these answer."""
