"""Picks the retriever, the chunk size and k that a corpus is answered best with, by questions with known evidence."""
