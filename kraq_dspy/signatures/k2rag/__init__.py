"""The steps of K2RAG."""
