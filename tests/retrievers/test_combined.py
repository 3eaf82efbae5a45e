"""Tests how passages are shared out between a question and its auxiliary questions, and merged."""

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from kraq_dspy.errors import IndexStateError
from kraq_dspy.ports import Filters, Vectors
from kraq_dspy.records import Chunk, Hit, Question, QuestionHit
from kraq_dspy.retrievers import CombinedRetriever, DenseRetriever, NearestQuestions, RetrievalRequest, share_budget
from tests.programs.conftest import Library


class Ranked:
    """A corpus of `size` numbered passages; every query finds the lowest numbers that are not excluded."""

    def __init__(self, size: int, scores: Sequence[float] = ()) -> None:
        self.scores = scores or [-float(number) for number in range(size)]
        self.chunks = [Chunk(str(number), "document", number, 0, 1, "x", 1) for number in range(size)]
        self.requests: list[tuple[str, int]] = []

    def __call__(
        self,
        question: str,
        k: int,
        *,
        exclude: Collection[str] = frozenset(),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> list[Hit]:
        assert k >= 1
        self.requests.append((question, k))
        left = [chunk for chunk in self.chunks if chunk.id not in set(exclude)]
        return [Hit(chunk, self.scores[chunk.position], question) for chunk in left[:k]]


class Numbered:
    """Always as many auxiliary questions as are wanted."""

    def __call__(self, text: str, n: int, *, vector: Vectors | None = None) -> list[QuestionHit]:
        return [QuestionHit(Question(str(i), f"auxiliary {i}", "kraq", None, 0, (), ()), 1 - i / 10) for i in range(n)]

    def encode(self, text: str) -> Vectors:
        return np.zeros(1, dtype=np.float32)

    def vectors(self, question_ids: Sequence[str]) -> Vectors:
        return np.zeros((len(question_ids), 1), dtype=np.float32)


def combined(library: Library, **settings: Any) -> CombinedRetriever:
    return CombinedRetriever(
        DenseRetriever(library.records, library.chunk_vectors, library.embedder),
        NearestQuestions(library.records, library.question_vectors, library.embedder),
        **settings,
    )


def test_ten_passages_and_three_questions_retrieve_ten_or_the_papers_eight() -> None:
    assert len(CombinedRetriever(Ranked(100), Numbered(), n=3, alpha=0.5)("q", 10)) == 10
    assert len(CombinedRetriever(Ranked(100), Numbered(), n=3, alpha=0.5, strict=True)("q", 10)) == 8


def test_what_the_floors_lose_goes_to_the_main_query() -> None:
    assert share_budget(10, 3, 0.5) == (7, 1)
    assert share_budget(10, 3, 0.5, strict=True) == (5, 1)
    hits = CombinedRetriever(Ranked(100), Numbered(), n=3, alpha=0.5)("q", 10)
    assert [hit.query for hit in hits] == ["q"] * 7 + ["auxiliary 0", "auxiliary 1", "auxiliary 2"]
    strict = CombinedRetriever(Ranked(100), Numbered(), n=3, alpha=0.5, strict=True)("q", 10)
    assert [hit.query for hit in strict] == ["q"] * 5 + ["auxiliary 0", "auxiliary 1", "auxiliary 2"]


def test_the_share_is_the_decimal_as_written() -> None:
    assert math.floor(0.29 * 100) == 28  # what binary would make of it
    assert share_budget(100, 1, 0.29, strict=True)[0] == 29


@given(k=st.integers(1, 60), n=st.integers(1, 8), percent=st.integers(0, 100), size=st.integers(0, 80))
def test_the_whole_budget_is_retrieved_or_the_whole_corpus(k: int, n: int, percent: int, size: int) -> None:
    hits = CombinedRetriever(Ranked(size), Numbered(), n=n, alpha=percent / 100)("q", k)
    assert len(hits) == min(k, size)
    assert len({hit.chunk.id for hit in hits}) == len(hits)


@given(k=st.integers(1, 60), n=st.integers(1, 8), percent=st.integers(0, 100), size=st.integers(0, 80))
def test_strict_retrieves_the_papers_count(k: int, n: int, percent: int, size: int) -> None:
    main = math.floor(Fraction(percent, 100) * k)
    each = math.floor(Fraction(k - main, n))
    hits = CombinedRetriever(Ranked(size), Numbered(), n=n, alpha=percent / 100, strict=True)("q", k)
    assert len(hits) == min(main + n * each, size)
    assert sum(hit.query == "q" for hit in hits) == min(main, size)


def test_each_auxiliary_question_leaves_out_what_was_found_before(library: Library) -> None:
    # The question points along (castle 2, music 1)/sqrt 5: hall (castle, music) has cosine .949, keep (castle) .894.
    # The castle question's best is keep again, so it brings gate (.707); the music question's best is song (1).
    evidence = combined(library, n=2, alpha=0.5).search(RetrievalRequest("castle castle music", 4))
    assert [hit.question.text for hit in evidence.auxiliary_questions] == [
        "Which castle is there?",
        "What music is there?",
    ]
    assert [(hit.chunk.title, hit.query, hit.why) for hit in evidence.hits] == [
        ("hall", "castle castle music", "dense"),
        ("keep", "castle castle music", "dense"),
        ("gate", "Which castle is there?", "auxiliary"),
        ("song", "What music is there?", "auxiliary"),
    ]


def test_hits_say_which_question_found_them_and_why(library: Library) -> None:
    hits = combined(library, n=1, alpha=0.5)("music", 4)
    assert [(hit.query, hit.why) for hit in hits] == [("music", "dense")] * 2 + [
        ("What music is there?", "auxiliary")
    ] * 2
    assert set(library.names(hits[:2])) == {"song", "tune"}  # cosines 1 and .894
    assert library.names(hits[2:])[0] == "hall"  # .707, the best that is left


def test_what_filters_take_from_the_auxiliary_questions_the_main_query_fills_up(library: Library) -> None:
    retrieve = combined(library, n=2, alpha=0.5)
    assert len(retrieve("castle", 9)) == 9
    narrow = {"document_id": ["doc-g", "doc-s"]}
    assert set(library.names(retrieve("castle", 4, filters=narrow))) == {"gate", "span", "song"}


def test_alpha_one_is_the_inner_retriever_and_needs_no_questions(library: Library) -> None:
    library.question_vectors.delete(library.question_vectors.ids())
    dense = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    evidence = combined(library, alpha=1.0).search(RetrievalRequest("a bridge to the castle", 5))
    assert evidence.hits == dense("a bridge to the castle", 5)
    assert evidence.auxiliary_questions == []
    with pytest.raises(IndexStateError, match="alpha=1"):
        combined(library, alpha=0.5)("a bridge to the castle", 5)


def test_the_question_is_encoded_once_and_stored_questions_never(library: Library) -> None:
    encoded: list[str] = []

    class Counting:
        name = library.embedder.name
        dimension = library.embedder.dimension

        def encode_queries(self, texts: Sequence[str]) -> Vectors:
            encoded.extend(texts)
            rows: Vectors = library.embedder.encode_queries(texts)
            return rows

        encode_passages = encode_queries

    embedder = Counting()
    retrieve = CombinedRetriever(
        DenseRetriever(library.records, library.chunk_vectors, embedder),
        NearestQuestions(library.records, library.question_vectors, embedder),
        n=2,
    )
    assert len(retrieve("castle and music", 6)) == 6
    assert encoded == ["castle and music"]


def test_filling_up_needs_no_second_search() -> None:
    corpus = Ranked(100)
    CombinedRetriever(corpus, Numbered(), n=2, alpha=0.5)("q", 10)
    assert corpus.requests == [("q", 10), ("auxiliary 0", 2), ("auxiliary 1", 2)]


class Named(Numbered):
    """As many auxiliary questions as are wanted, with vectors that tell them apart."""

    def __call__(self, text: str, n: int, *, vector: Vectors | None = None) -> list[QuestionHit]:
        questions = [
            Question(f"q{i}", f"Who met Ada {i}?", "kraq", None, 0, (), (), names=("Ada", "Charles", "London"))
            for i in range(n)
        ]
        return [QuestionHit(question, 1 - number / 10) for number, question in enumerate(questions)]

    def vectors(self, question_ids: Sequence[str]) -> Vectors:
        return np.array([[float(id[1:])] for id in question_ids], dtype=np.float32)


class Recorded(Ranked):
    """Keeps what each search excluded, and by which vector it searched."""

    def __call__(
        self,
        question: str,
        k: int,
        *,
        exclude: Collection[str] = frozenset(),
        filters: Filters | None = None,
        vector: Vectors | None = None,
    ) -> list[Hit]:
        self.excluded = [*getattr(self, "excluded", []), set(exclude)]
        self.searched = [*getattr(self, "searched", []), None if vector is None else float(vector[0])]
        return super().__call__(question, k, exclude=exclude, filters=filters, vector=vector)


def test_algorithm_1_line_by_line() -> None:
    """M=10, alpha=.5, n=2: floor(.5*10) = 5 for Q, floor((10-5)/2) = 2 for each of S; D is excluded from each search;
    a question of S is searched by its text and its stored vector."""
    corpus = Recorded(100)
    hits = CombinedRetriever(corpus, Named(), n=2, alpha=0.5, strict=True)("Q", 10)
    assert corpus.requests == [("Q", 5), ("Who met Ada 0?", 2), ("Who met Ada 1?", 2)]
    assert corpus.excluded == [set(), set("01234"), set("0123456")]
    assert corpus.searched == [0.0, 0.0, 1.0]
    assert [hit.chunk.id for hit in hits] == ["0", "1", "2", "3", "4", "5", "6", "7", "8"]


def test_names_are_a_variant_that_searches_with_a_longer_text() -> None:
    corpus = Recorded(100)
    CombinedRetriever(corpus, Named(), n=1, alpha=0.5, strict=True, names=2)("Q", 4)
    assert corpus.requests == [("Q", 2), ("Who met Ada 0? Charles", 2)]
    assert corpus.searched == [0.0, None]  # the stored vector is that of the text alone


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"n": 0}, "n is 0"), ({"alpha": 1.2}, r"alpha is 1\.2; expected a number from 0 to 1")],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CombinedRetriever(Ranked(1), Numbered(), **settings)
