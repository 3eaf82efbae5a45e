"""Tells questions that the documents of an index do not answer: what a question scores, and the floor of a corpus."""
