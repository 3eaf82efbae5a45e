"""Finds the stored questions nearest to a question, and retrieves with them: Algorithm 1 of the KRAQ paper."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import dspy
import numpy as np

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.options import require_options
from kraq_dspy.errors import IndexStateError
from kraq_dspy.ports import Embedder, Filters, QuestionFinder, QuestionSource, RetrieverLike, Vectors, VectorSearch
from kraq_dspy.records import Hit, Question, QuestionHit
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.hits import RetrievalRequest, Retrieving
from kraq_dspy.retrievers.in_memory import RecordsInMemory, encoder_of, given_question
from kraq_dspy.spec import RetrieverSpec, Space, option


def share_budget(k: int, n: int, alpha: float, *, strict: bool = False) -> tuple[int, int]:
    """Share a budget of passages between the question and auxiliary questions: line 2 of Algorithm 1 of the KRAQ
    paper.

    Args:
        k: passages in all, 1 or more.
        n: auxiliary questions, 1 or more.
        alpha: the share of the question, in [0, 1], as a decimal number: 0.29 of 100 is 29.
        strict: round down twice, as the paper does. With `k=10`, `alpha=0.5` and `n=3`, the paper retrieves 8
            passages.

    Returns:
        The number of passages for the question, `floor(alpha * k)`, and for each auxiliary question, `floor(rest /
        n)`. Without `strict`, the question gets the remaining passages.

    >>> share_budget(10, n=3, alpha=0.5), share_budget(10, n=3, alpha=0.5, strict=True)
    ((7, 1), (5, 1))
    """
    main = int(Fraction(repr(float(alpha))) * k)
    each = (k - main) // n
    return (main if strict else k - n * each), each


@dataclass(frozen=True, slots=True)
class CombinedHits:
    """The result of combined retrieval.

    Attributes:
        hits: the passages. The hits of the question come first.
        auxiliary_questions: the stored questions behind the other hits, nearest first.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> combined = CombinedRetriever(space.retriever("dense"), ["Who lived in London?"], n=1)
    >>> combined.search(RetrievalRequest("Where did Ada live?", 2)).auxiliary_questions[0].question.text
    'Who lived in London?'
    """

    hits: list[Hit]
    auxiliary_questions: list[QuestionHit]


@dataclass(frozen=True)
class SharingOptions:
    """How a budget is shared between the question and its nearest stored ones."""

    n: int = option(2, "Auxiliary questions (alpha=1 goes without them).", least=1, counts="questions")
    alpha: float = option(0.5, "Share of the passages found by your question.", least=0, most=1)
    strict: bool = option(False, "Retrieve the paper's count, which its two floors make smaller.")
    questions: Literal["kraq", "random"] = option("kraq", "Auxiliary questions: kraq, or random (a baseline).")
    names: int = option(
        0, "Central names to append to an auxiliary question in the search; none in the paper.", least=0
    )


@dataclass(frozen=True)
class CombinedRetrieverOptions(SharingOptions):
    over: str = option("dense", "Retriever for each question.")


class CombinedRetriever(Retrieving):
    """Retrieves with the question and with the nearest stored questions (KRAQ paper, Algorithm 1).

    Args:
        retrieve: a retriever, or a function that takes a question and returns texts (`as_retriever`).
        questions: the stored questions: a list of texts, or what finds the nearest ones of an index
            (`space.questions()`).
        n: the number of auxiliary questions, 1 or more.
        alpha: the share of the budget `k` for the question itself, in [0, 1]. 1 needs no stored questions.
        strict: retrieve as many passages as the paper, which rounds down twice (`share_budget`).
        names: the number of central names to append to each auxiliary question. The paper appends none.

    Raises:
        ValueError: for an option out of range.
        TypeError: if `retrieve` is not a retriever, or `questions` are not questions.
        IndexStateError: when called, if the index has no questions and `alpha` is below 1.

    The hits of the question come first. Then come the hits of each auxiliary question, the nearest question first.
    Such a hit has the `why` "auxiliary" and the auxiliary question as `query`. Each search leaves out passages that
    an earlier search found. If an auxiliary question finds too few passages, further hits of the question fill the
    budget, except with `strict`. The scores come from `retrieve`. Compare scores only within one query.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> combined = CombinedRetriever(space.retriever("dense"), space.questions(), n=1)
    >>> [hit.why for hit in combined("Where did Ada live?", 2)]
    ['dense', 'auxiliary']
    """

    def __init__(
        self,
        retrieve: RetrieverLike,
        questions: QuestionFinder | Sequence[str],
        *,
        n: int = SharingOptions.n,
        alpha: float = SharingOptions.alpha,
        strict: bool = SharingOptions.strict,
        names: int = SharingOptions.names,
    ) -> None:
        require_options(SharingOptions, n=n, alpha=alpha, strict=strict, names=names)
        self.retrieve = as_retriever(retrieve)
        self.questions = as_question_finder(questions)
        self.n = n
        self.alpha = alpha
        self.strict = strict
        self.names = names

    def find(self, request: RetrievalRequest) -> list[Hit]:
        return self.search(request).hits

    def search(self, request: RetrievalRequest) -> CombinedHits:
        """Do as a call does, and say which auxiliary questions were asked."""
        k = request.k
        main, each = share_budget(k, self.n, self.alpha, strict=self.strict)
        if not each:  # no stored questions are needed
            return CombinedHits(self._main(request, main), [])

        if request.vector is None:
            request = replace(request, vector=self.questions.encode(request.question))
        auxiliary = self.questions(request.question, self.n, vector=request.vector)
        # Without `strict`, the main query's whole ranking is fetched at once: what fills up at the end comes from it,
        # on the same scale of scores and without a second search.
        ranking = self._main(request, main if self.strict else k)
        hits = ranking[:main]
        known = {hit.chunk.id for hit in hits}
        if auxiliary:
            stored = self.questions.vectors([hit.question.id for hit in auxiliary])
            for near, row in zip(auxiliary, stored, strict=True):
                text, excluded = near.question.with_names(self.names), {*request.exclude, *known}
                vector = row if text == near.question.text else None  # a longer text is encoded by the retriever
                more = RetrievalRequest(text, each, excluded, request.filters, vector).send_to(self.retrieve)
                hits += [replace(hit, why="auxiliary") for hit in more]
                known.update(hit.chunk.id for hit in more)

        if not self.strict:
            hits += [hit for hit in ranking if hit.chunk.id not in known][: k - len(hits)]
        return CombinedHits(hits, auxiliary)

    def _main(self, request: RetrievalRequest, k: int) -> list[Hit]:
        """`k` may be 0 here: with alpha=0 all goes to the auxiliary questions."""
        return replace(request, k=k).send_to(self.retrieve) if k else []


class NearestQuestions(SharedByCopies):
    """Finds the stored questions nearest to a question, by the cosine of embeddings. It skips questions marked as
    duplicates.

    Args:
        questions: the source of the questions (`space.index`).
        vectors: the store with the embeddings of the questions, made by `embedder`.
        embedder: the encoder.
        filters: conditions on the questions, such as `{"level": 0}`; None for all.

    Raises:
        IndexStateError: when called, if the store holds no question.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> nearest = NearestQuestions(space.index, space.index.question_vectors, space.embedder)
    >>> [hit.question.text for hit in nearest("Where did Ada live?", 1)]
    ['London, England and Ada']
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


def as_question_finder(questions: Any, embedder: Embedder | dspy.Embedder | None = None) -> QuestionFinder:
    """Return a question finder for `questions`. If `questions` is a question finder already, return it unchanged.

    Args:
        questions: a list of texts or `Question`s, or a question finder.
        embedder: the encoder of the questions; by default the packaged one.

    Returns:
        What finds the nearest of the questions.

    Raises:
        TypeError: if `questions` is neither a list of questions nor a question finder.

    >>> [hit.question.text for hit in as_question_finder(["Who is Ada?", "Where is Rome?"])("Who was Ada?", 1)]
    ['Who is Ada?']
    """
    if callable(questions):
        finder: QuestionFinder = questions
        return finder
    if isinstance(questions, str) or not isinstance(questions, Sequence):
        raise TypeError(f"questions is {questions!r:.60}; expected a list of questions, or a question finder.")

    records = []
    for each in questions:
        if not isinstance(each, str | Question):
            raise TypeError(f"questions holds {each!r:.60}, a {type(each).__name__}; expected texts or questions.")
        records.append(given_question(each) if isinstance(each, str) else each)

    encoder, texts = encoder_of(embedder), [record.text for record in records]
    vectors = encoder.encode_queries(texts) if texts else np.zeros((0, encoder.dimension), np.float32)
    stored = RecordsInMemory(records, vectors)
    return NearestQuestions(stored, stored, encoder)


def require_questions(space: Space, source: str) -> None:
    """Raise IndexStateError, with the command that makes them, for an index without questions of the source: without
    them a condition would be retrieval alone, and be reported as something else."""
    if has_questions(space, source):
        return
    if source == "random":
        raise IndexStateError(
            "The index holds no random questions, the papers' baseline. Make them: kraq index CORPUS --out DIR "
            "--random-questions"
        )
    raise IndexStateError(
        "The index holds no questions of its communities, and combined retrieval needs them. Make them with `kraq "
        "resume DIR`, or go without them (alpha=1)."
    )


def has_questions(space: Space, source: str) -> bool:
    """Whether the index has questions of the source: "kraq" or "random"."""
    return any(True for _ in space.index.all(Question, source=source))


def make_combined(space: Space, options: CombinedRetrieverOptions) -> CombinedRetriever:
    if options.alpha < 1:
        require_questions(space, options.questions)
    shares = asdict(options)
    retrieve, questions = space.retriever(shares.pop("over")), space.questions(shares.pop("questions"))
    return CombinedRetriever(retrieve, questions, **shares)


COMBINED = RetrieverSpec(
    "combined",
    "With the question and its nearest KRAQ questions.",
    make_combined,
    "CombinedRetriever",
    CombinedRetrieverOptions,
    source="KRAQ paper, Algorithm 1",
    needs_graph=True,
)
