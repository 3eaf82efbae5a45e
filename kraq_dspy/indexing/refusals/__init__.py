"""Tells questions that the documents of an index do not answer: what a question scores, and the threshold of a
corpus."""
