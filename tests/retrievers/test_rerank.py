"""Tests that hits are ordered anew by the questions of their communities."""

from collections.abc import Sequence
from typing import Any

import pytest

from kraq_dspy.ports import Vectors
from kraq_dspy.records import Hit
from kraq_dspy.retrievers import DenseRetriever, QuestionSimilarityReranker, RerankingRetriever, questions_by_chunk
from tests.programs.conftest import Library


class ShortestFirst:
    name = "shortest first"

    def __call__(self, question: str, hits: Sequence[Hit], *, vector: Vectors | None = None) -> list[float]:
        return [-float(len(hit.chunk.text)) for hit in hits]


def dense(library: Library) -> DenseRetriever:
    return DenseRetriever(library.records, library.chunk_vectors, library.embedder)


def similar(library: Library, chunks_of: dict[str, list[str]], **settings: Any) -> QuestionSimilarityReranker:
    communities = questions_by_chunk(
        {community: [library.id(name) for name in names] for community, names in chunks_of.items()},
        library.records.questions.values(),
    )
    return QuestionSimilarityReranker(communities, library.question_vectors, library.embedder, **settings)


def test_the_pool_is_ordered_anew_by_the_score_that_hits_then_have(library: Library) -> None:
    hits = RerankingRetriever(dense(library), ShortestFirst(), pool=4)("music", 2)
    assert library.names(hits) == ["song", "hall"]  # 18 and 20 characters, of song, tune, hall and one without music
    assert [(hit.score, hit.why) for hit in hits] == [(-18.0, "reranked"), (-20.0, "reranked")]


def test_what_the_pool_does_not_hold_is_not_found(library: Library) -> None:
    assert library.names(RerankingRetriever(dense(library), ShortestFirst(), pool=1)("music", 1)) == ["song"]
    with pytest.raises(ValueError, match="pool is 0"):
        RerankingRetriever(dense(library), ShortestFirst(), pool=0)


def test_a_community_whose_question_is_nearer_lifts_its_passages(library: Library) -> None:
    # "hall" and "gate" are as near to "castle" as each other; "about castles" asks for one, "about music" does not.
    hits = dense(library)("castle", 3)[1:]
    assert hits[0].score == pytest.approx(hits[1].score)
    for first in ("hall", "gate"):
        other = {"hall": "gate", "gate": "hall"}[first]
        rerank = similar(library, {"about castles": [first], "about music": [other]})
        assert library.names(RerankingRetriever(dense(library), rerank)("castle", 3)) == ["keep", first, other]


def test_the_score_by_hand(library: Library) -> None:
    rerank = similar(library, {"about castles": ["gate"], "about bridges": ["gate"]}, balance=0.75)
    keep, gate = [hit for hit in dense(library)("castle", 9) if hit.chunk.title in ("keep", "gate")]
    # keep: cosine 1, no community. gate: cosine .5 ** .5, and the nearer of its questions asks for the castle alone.
    assert rerank("castle", [keep, gate]) == pytest.approx([0.75, 0.75 * 0.5**0.5 + 0.25], rel=1e-5)
    assert rerank("castle", []) == []


def test_a_duplicate_question_is_stood_for_by_its_original(library: Library) -> None:
    keep = dense(library)("castle", 1)
    assert similar(library, {"castles again": ["keep"]})("castle", keep) == pytest.approx([1.0], rel=1e-5)


def test_a_balance_that_is_no_share_is_refused(library: Library) -> None:
    with pytest.raises(ValueError, match=r"balance is 1\.5"):
        similar(library, {}, balance=1.5)
