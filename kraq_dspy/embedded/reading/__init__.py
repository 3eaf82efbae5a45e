"""Reads English with a parser: sentences, names, phrases, who does what to whom, and the questions that this answers.

A passage is read once, when it is indexed (`kept.py`); whatever needs words is handed the `Analysis`. Passages in other
languages are not read here, but by the rules of `asking/`.
"""
