"""Reorders the candidates of any retriever by a `ports.Reranker`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kraq_dspy._internal.one_blas_thread import product
from kraq_dspy._internal.options import require_options
from kraq_dspy.ports import Embedder, Reranker, Retriever, Vectors, VectorStore
from kraq_dspy.records import Hit, Question
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.hits import RetrievalRequest, Retrieving, ranked
from kraq_dspy.spec import RetrieverSpec, Space, option


@dataclass(frozen=True)
class RerankedOptions:
    over: str = option("hybrid", "The retriever that finds the candidates.")
    balance: float = option(0.9, "Weight of the candidate's own score; its questions get the rest.", least=0, most=1)
    pool: int = option(50, "Candidates.", least=1)


class RerankingRetriever(Retrieving):
    """Reorders the hits of a retriever by another score. `why` is "reranked".

    Args:
        retrieve: the retriever of the candidates.
        rerank: computes the new scores of the candidates.
        pool: the number of candidates, at least `k`.

    Raises:
        ValueError: for a `pool` below 1.

    Hits with the same score are in the order of their chunk ids.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> rerank = QuestionSimilarityReranker(space.asked_of, space.index.question_vectors, space.embedder)
    >>> [hit.why for hit in RerankingRetriever(space.retriever("dense"), rerank)("Where did Ada live?", 1)]
    ['reranked']
    """

    def __init__(self, retrieve: Retriever, rerank: Reranker, *, pool: int = RerankedOptions.pool) -> None:
        require_options(RerankedOptions, pool=pool)
        self.retrieve = as_retriever(retrieve)
        self.rerank = rerank
        self.pool = pool

    def find(self, request: RetrievalRequest) -> list[Hit]:
        candidates = replace(request, k=max(request.k, self.pool)).send_to(self.retrieve)
        if not candidates:
            return []
        scores = self.rerank(request.question, candidates, vector=request.vector)
        chunks = {hit.chunk.id: hit.chunk for hit in candidates}
        return ranked(
            chunks, dict(zip(chunks, map(float, scores), strict=True)), request.question, request.k, "reranked"
        )


def questions_by_chunk(chunk_ids: Mapping[str, Sequence[str]], questions: Iterable[Question]) -> dict[str, set[str]]:
    """List the questions that stand for the communities of each chunk.

    Args:
        chunk_ids: the chunk ids of each community, by community id.
        questions: the questions. The result has the original question of each duplicate.

    Returns:
        The ids of the questions, by chunk id.

    >>> question = Question("q", "Who was Ada?", "kraq", community_id="c", level=0, chunk_ids=("ada",), document_ids=())
    >>> questions_by_chunk({"c": ["ada", "london"]}, [question])
    {'ada': {'q'}, 'london': {'q'}}
    """
    by_chunk: dict[str, set[str]] = {}
    for question in questions:
        for chunk_id in chunk_ids.get(question.community_id or "", ()):
            by_chunk.setdefault(chunk_id, set()).add(question.duplicate_of or question.id)
    return by_chunk


class QuestionSimilarityReranker:
    """Scores a passage by the similarity of the question to the KRAQ questions of the passage's communities. It calls
    no
    language model.

    Args:
        asked_of: the ids of the questions of each chunk, by chunk id (`questions_by_chunk`).
        question_vectors: the store with the embeddings of the questions, made by `embedder`.
        embedder: the encoder of the questions.
        balance: the weight of the hit's own score, in [0, 1].

    Raises:
        ValueError: for a `balance` out of its range.

    The new score is `balance * score / best score + (1 - balance) * cosine`. The cosine is the cosine with the
    nearest KRAQ question, or 0 if the communities have no question. Scores below 0 count as 0.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> rerank = QuestionSimilarityReranker(space.asked_of, space.index.question_vectors, space.embedder, balance=1)
    >>> [round(score, 1) for score in rerank("Where did Ada live?", space.retriever("dense")("Where did Ada live?", 1))]
    [1.0]
    """

    def __init__(
        self,
        asked_of: Mapping[str, Collection[str]],
        question_vectors: VectorStore,
        embedder: Embedder,
        *,
        balance: float = RerankedOptions.balance,
    ) -> None:
        require_options(RerankedOptions, balance=balance)
        self.asked_of = asked_of
        self.question_vectors = question_vectors
        self.embedder = embedder
        self.balance = balance

    @property
    def name(self) -> str:
        return f"question similarity, balance {self.balance:g}"

    def __call__(self, question: str, hits: Sequence[Hit], *, vector: Vectors | None = None) -> list[float]:
        if not hits:
            return []
        if vector is None:
            vector = self.embedder.encode_queries([question])[0]

        asked_of = [self.asked_of.get(hit.chunk.id, ()) for hit in hits]
        question_ids = sorted(set().union(*asked_of))
        similarities = product(self.question_vectors.vectors(question_ids), vector)
        cosine_of = dict(zip(question_ids, similarities.tolist(), strict=True))

        best = max(hit.score for hit in hits)
        scores = []
        for hit, ids in zip(hits, asked_of, strict=True):
            share = max(hit.score, 0.0) / best if best > 0 else 0.0
            cosine = max((cosine_of[id] for id in ids), default=0.0)
            scores.append(self.balance * share + (1 - self.balance) * cosine)
        return scores


def make_reranked(space: Space, options: RerankedOptions) -> RerankingRetriever:
    rerank = QuestionSimilarityReranker(
        space.asked_of, space.index.question_vectors, space.embedder, balance=options.balance
    )
    return RerankingRetriever(space.retriever(options.over), rerank, pool=options.pool)


RERANKED = RetrieverSpec(
    "reranked",
    "Reordered by the KRAQ questions of the passages' communities.",
    make_reranked,
    "RerankingRetriever",
    RerankedOptions,
    needs_graph=True,
)


@dataclass(frozen=True)
class CrossEncoderOptions:
    model: str = option(help="A hub name or a folder of the cross-encoder.")
    over: str = option("hybrid", "The retriever that finds the candidates.")
    pool: int = option(50, "Candidates.", least=1)


CROSS_ENCODER = RetrieverSpec(
    "cross-encoder",
    "Reordered by a cross-encoder: cross-encoder:MODEL.",
    lambda space, options: RerankingRetriever(
        space.retriever(options.over), space.cross_encoder(options.model), pool=options.pool
    ),
    "RerankingRetriever",
    CrossEncoderOptions,
    argument="model",
)


def names_a_model(*values: object) -> bool:
    """Whether one of a client's words is the retriever that loads a model which is named with it: models are chosen by
    whoever starts a server, and not by those who ask it."""
    return any(isinstance(value, str) and CROSS_ENCODER.name in value for value in values)
