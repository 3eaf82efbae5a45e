"""Holds the steps of QA-RAG."""
