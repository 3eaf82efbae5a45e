"""Computes the vectors that sentence-transformers gives, with which ours are compared."""

from pathlib import Path

from sentence_transformers import SentenceTransformer

from kraq_dspy.ports import Vectors


def library_vectors(folder: str | Path, texts: list[str], prefix: str = "") -> Vectors:
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    vectors: Vectors = model.encode(texts, prompt=prefix, normalize_embeddings=True, show_progress_bar=False)
    return vectors
