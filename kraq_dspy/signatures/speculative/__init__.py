"""Holds the steps of speculative RAG."""
