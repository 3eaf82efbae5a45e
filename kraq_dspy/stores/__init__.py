"""The asset on disk: records and results in SQLite, vectors in Qdrant."""
