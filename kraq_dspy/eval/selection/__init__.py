"""Picks the retriever, the passage size and k that a corpus is answered best with, by questions with known evidence."""
