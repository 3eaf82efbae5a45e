"""Keeps vectors and words: in files of the index folder, or on a Qdrant server.

Both keep a point's dense vector, its BM25 term weights (multiplied by the inverse
document frequency when they are searched) and its payload as tags. Both satisfy `ports.VectorStore`.
"""

from kraq_dspy.asset.store.vectors.local import LocalVectorStore
from kraq_dspy.asset.store.vectors.server import QdrantVectorStore

__all__ = ["LocalVectorStore", "QdrantVectorStore"]
