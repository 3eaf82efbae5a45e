"""Holds the pipeline, the retrievers and the question-answering programs."""
