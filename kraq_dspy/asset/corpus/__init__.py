"""Turns files into documents, and documents into chunks."""

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.asset.corpus.tokens import count_tokens, truncate_tokens

__all__ = ["chunk_document", "count_tokens", "load_documents", "truncate_tokens"]
