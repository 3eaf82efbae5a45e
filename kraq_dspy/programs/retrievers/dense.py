"""Dense retrieval: the chunks whose embeddings are nearest to the question's."""

from collections.abc import Collection

from kraq_dspy.ports import ChunkSource, Embedder, Filters, Vectors, VectorStore
from kraq_dspy.programs.retrievers.hits import Retrieving, check_request, to_hits
from kraq_dspy.records import Hit


class DenseRetriever(Retrieving):
    """`score` is the cosine of the two embeddings, in [-1, 1]; `why` is "dense".

    `vectors` holds the chunks under their ids, made by `embedder`, which also embeds the questions.
    """

    def __init__(self, chunks: ChunkSource, vectors: VectorStore, embedder: Embedder) -> None:
        self.chunks = chunks
        self.vectors = vectors
        self.embedder = embedder

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
        if vector is None:
            vector = self.embedder.encode_queries([question])[0]
        (scored,) = self.vectors.search(vector[None, :], k, exclude=exclude, filters=filters)
        return to_hits(self.chunks, scored, question, "dense")
