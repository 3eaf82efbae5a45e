"""Holds the steps of K2RAG."""
