"""Keeps the asset on disk: records, results and prepared answers in SQLite, vectors in files or on a Qdrant server."""
