"""Retrieves by words: Okapi BM25, as the vector store computes it."""

from kraq_dspy.ports import ChunkSource, VectorStore
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, Retrieving, to_hits
from kraq_dspy.programs.shared.spec import NoOptions, RetrieverSpec, Space
from kraq_dspy.records import Hit


class BM25Retriever(Retrieving):
    """`score` is the BM25 score, above 0 and without an upper end; `why` is "bm25".

    Chunks that share no word with the question are not found, so there may be fewer than `k`.
    """

    def __init__(self, chunks: ChunkSource, vectors: VectorStore) -> None:
        self.chunks = chunks
        self.vectors = vectors

    def find(self, request: RetrievalRequest) -> list[Hit]:
        scored = self.vectors.search_text(request.question, request.k, exclude=request.exclude, filters=request.filters)
        return to_hits(self.chunks, scored, request.question, "bm25")


def make_bm25(space: Space, options: NoOptions) -> BM25Retriever:
    return BM25Retriever(space.index, space.index.chunk_vectors)


BM25 = RetrieverSpec(
    "bm25",
    "Exact names and terms, without an encoder.",
    make_bm25,
    "BM25Retriever",
)
