"""The pipeline, the retrievers and the question-answering programs."""
