"""Computes the vectors that sentence-transformers gives, with which ours are compared."""

from pathlib import Path

from kraq_dspy.ports import Vectors


def library_vectors(folder: str | Path, texts: list[str], prefix: str = "") -> Vectors:
    from sentence_transformers import SentenceTransformer  # seconds

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    vectors: Vectors = model.encode(texts, prompt=prefix, normalize_embeddings=True, show_progress_bar=False)
    return vectors
