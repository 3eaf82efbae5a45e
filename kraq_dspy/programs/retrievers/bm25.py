"""Retrieval by words: Okapi BM25, as the vector store computes it."""

from collections.abc import Collection

from kraq_dspy.ports import ChunkSource, Filters, Vectors, VectorStore
from kraq_dspy.programs.retrievers.hits import Retrieving, check_request, to_hits
from kraq_dspy.records import Hit


class BM25Retriever(Retrieving):
    """`score` is the BM25 score, above 0 and without an upper end; `why` is "bm25".

    Chunks that share no word with the question are not found, so there may be fewer than `k`.
    """

    def __init__(self, chunks: ChunkSource, vectors: VectorStore) -> None:
        self.chunks = chunks
        self.vectors = vectors

    def __call__(
        self,
        question: str,
        k: int,
        *,
        exclude: Collection[str] = frozenset(),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> list[Hit]:
        check_request(question, k)
        scored = self.vectors.search_text(question, k, exclude=exclude, filters=filters)
        return to_hits(self.chunks, scored, question, "bm25")
