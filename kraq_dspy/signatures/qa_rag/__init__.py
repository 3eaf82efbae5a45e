"""The steps of QA-RAG."""
