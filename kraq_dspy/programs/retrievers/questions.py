"""Finds the stored questions nearest to a text: how a user's question meets the representative ones."""

from collections.abc import Sequence

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.errors import IndexStateError
from kraq_dspy.ports import Embedder, Filters, QuestionSource, Vectors, VectorSearch
from kraq_dspy.programs.retrievers.hits import RetrievalRequest
from kraq_dspy.records import QuestionHit


class NearestQuestions(SharedByCopies):
    """Searches `vectors`, which holds the questions under their ids, made by `embedder`.

    Questions marked as duplicates are passed over. `filters` narrows the search to some of them by what the store
    knows of them (a level, a source). Raises IndexStateError when the store holds no question at all.
    """

    def __init__(
        self, questions: QuestionSource, vectors: VectorSearch, embedder: Embedder, *, filters: Filters | None = None
    ) -> None:
        self.questions = questions
        self.stored = vectors
        self.embedder = embedder
        self.filters = filters

    def __call__(self, text: str, n: int, *, vector: Vectors | None = None) -> list[QuestionHit]:
        vector = RetrievalRequest(text, n, vector=vector).embedded_by(self.embedder)
        hits: list[QuestionHit] = []
        passed: set[str] = set()
        size = 2 * n
        while True:
            (scored,) = self.stored.search(vector[None, :], size, exclude=passed, filters=self.filters)
            questions = self.questions.questions_by_id([question_id for question_id, _ in scored])
            for question, (_, similarity) in zip(questions, scored, strict=True):
                if question.duplicate_of is None:
                    hits.append(QuestionHit(question, similarity))
            if len(hits) >= n or len(scored) < size:
                break
            passed.update(question_id for question_id, _ in scored)
            size *= 2
        if not hits and not passed and self.stored.count() == 0:
            raise IndexStateError(
                "The index holds no questions, and combined retrieval needs them. Make them with `kraq index` (the "
                "whole pipeline), list them with `kraq questions`, or go without them (alpha=1)."
            )
        return hits[:n]

    def encode(self, text: str) -> Vectors:
        """The embedding of `text` among the questions', float32 `[dimension]`, L2-normalised."""
        vector: Vectors = self.embedder.encode_queries([text])[0]
        return vector

    def vectors(self, question_ids: Sequence[str]) -> Vectors:
        return self.stored.vectors(question_ids)
