"""The steps of speculative RAG."""
