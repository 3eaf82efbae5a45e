"""Keeps vectors and words, in files of the index folder or on a Qdrant server: both satisfy `ports.VectorStore`."""

from kraq_dspy.asset.store.vectors.local import LocalVectorStore
from kraq_dspy.asset.store.vectors.server import QdrantVectorStore

__all__ = ["LocalVectorStore", "QdrantVectorStore"]
