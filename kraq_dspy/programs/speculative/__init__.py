"""Holds the parts of Speculative RAG: subsets of the evidence, drafts, and the scores that choose among them."""
