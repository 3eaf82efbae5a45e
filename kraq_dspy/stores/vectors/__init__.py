"""Keeps vectors and words: Qdrant Edge in the index folder, or a Qdrant server.

Both keep a point's dense vector, its BM25 term weights (Edge's own tokenizer and stemmer; the engine multiplies by the
inverse document frequency) and its payload as tags. Both satisfy `ports.VectorStore`.
"""

from kraq_dspy.stores.vectors.embedded import EdgeVectorStore
from kraq_dspy.stores.vectors.server import QdrantVectorStore

__all__ = ["EdgeVectorStore", "QdrantVectorStore"]
