"""Retrieves the chunks whose embeddings are nearest to the question's."""

from kraq_dspy.ports import ChunkSource, Embedder, VectorSearch
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, Retrieving, to_hits
from kraq_dspy.programs.shared.spec import NoOptions, RetrieverSpec, Space
from kraq_dspy.records import Hit


class DenseRetriever(Retrieving):
    """`score` is the cosine of the two embeddings, in [-1, 1]; `why` is "dense".

    `vectors` holds the chunks under their ids, made by `embedder`, which also embeds the questions.
    """

    def __init__(self, chunks: ChunkSource, vectors: VectorSearch, embedder: Embedder) -> None:
        self.chunks = chunks
        self.vectors = vectors
        self.embedder = embedder

    def find(self, request: RetrievalRequest) -> list[Hit]:
        vector = request.embedded_by(self.embedder)
        (scored,) = self.vectors.search(vector[None, :], request.k, exclude=request.exclude, filters=request.filters)
        return to_hits(self.chunks, scored, request.question, "dense")


def make_dense(space: Space, options: NoOptions) -> DenseRetriever:
    return DenseRetriever(space.index, space.index.chunk_vectors, space.embedder)


DENSE = RetrieverSpec(
    "dense",
    "Passages with the nearest embeddings: the papers' baseline.",
    make_dense,
    "DenseRetriever",
)
