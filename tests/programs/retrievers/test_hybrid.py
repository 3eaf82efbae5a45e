import math

import pytest

from kraq_dspy.programs.retrievers import BM25Retriever, DenseRetriever, FusionRetriever, HybridRetriever
from kraq_dspy.programs.retrievers.sparse import sparse_cosines
from tests.programs.conftest import Library


def test_weight_one_is_dense_retrieval(library: Library) -> None:
    hybrid = HybridRetriever(library.records, library.chunk_vectors, library.embedder, weight=1)
    dense = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    hits = hybrid("a bridge to a castle", 9)
    assert [hit.chunk for hit in hits] == [hit.chunk for hit in dense("a bridge to a castle", 9)]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in dense("a bridge to a castle", 9)])


def test_weight_zero_ranks_by_words_alone(library: Library) -> None:
    hybrid = HybridRetriever(library.records, library.chunk_vectors, library.embedder, weight=0)
    assert library.names(hybrid("choir stone music", 2)) == ["song", "span"]  # two of the words, then one


def test_the_score_is_the_weighted_sum_of_both_cosines(library: Library) -> None:
    def score(weight: float) -> float:
        retrieve = HybridRetriever(library.records, library.chunk_vectors, library.embedder, weight=weight)
        (hit,) = (hit for hit in retrieve("stone bridge", 9) if hit.chunk.title == "span")
        return hit.score

    assert score(0.8) == pytest.approx(0.8 * score(1) + 0.2 * score(0))
    assert 0 < score(0) < 1


def test_okapi_adds_the_share_of_the_best_bm25_score(library: Library) -> None:
    def scores(okapi: float) -> dict[str, float]:
        retrieve = HybridRetriever(library.records, library.chunk_vectors, library.embedder, weight=1, okapi=okapi)
        return {hit.chunk.title: hit.score for hit in retrieve("choir music", 9)}

    plain, added = scores(0.0), scores(0.5)
    bm25 = {
        hit.chunk.title: hit.score for hit in BM25Retriever(library.records, library.chunk_vectors)("choir music", 9)
    }
    assert bm25["song"] == max(bm25.values())
    assert added["song"] - plain["song"] == pytest.approx(0.5)
    assert added["hall"] - plain["hall"] == pytest.approx(0.5 * bm25["hall"] / bm25["song"])
    assert added["rhine"] == plain["rhine"]  # shares no word


def test_a_word_match_that_the_embedding_misses_is_found(library: Library) -> None:
    hybrid = HybridRetriever(library.records, library.chunk_vectors, library.embedder, weight=0.5, pool=2)
    # "choir" is no keyword, so the embedding sees a question like "blank"; the word leads to "song".
    assert set(library.names(hybrid("choir", 2))) == {"blank", "song"}


def test_a_rank_is_worth_one_over_sixty_plus_rank(library: Library) -> None:
    dense = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    bm25 = BM25Retriever(library.records, library.chunk_vectors)
    question = "choir music"
    assert library.names(dense(question, 1)) == library.names(bm25(question, 1)) == ["song"]
    best, *rest = FusionRetriever([dense, bm25])(question, 9)
    assert best.chunk.title == "song"
    assert best.score == pytest.approx(2 / 61)
    assert all(hit.score < 2 / 61 for hit in rest)


def test_settings_out_of_range_are_refused(library: Library) -> None:
    with pytest.raises(ValueError, match=r"weight is 1\.5"):
        HybridRetriever(library.records, library.chunk_vectors, library.embedder, weight=1.5)
    with pytest.raises(ValueError, match="okapi is -1"):
        HybridRetriever(library.records, library.chunk_vectors, library.embedder, okapi=-1)
    with pytest.raises(ValueError, match="pool is 0"):
        HybridRetriever(library.records, library.chunk_vectors, library.embedder, pool=0)
    with pytest.raises(ValueError, match="no retrievers"):
        FusionRetriever([])


def test_sparse_cosine_by_hand() -> None:
    # Two passages, every word in one of them: idf = ln(1 + 1.5/1.5) = ln 2 for all, so weights are equal.
    cosines = sparse_cosines("red stone", ["red apple", "green stone wall"])
    assert cosines == pytest.approx([1 / (math.sqrt(2) * math.sqrt(2)), 1 / (math.sqrt(2) * math.sqrt(3))])


def test_sparse_cosine_of_nothing_in_common_is_zero() -> None:
    assert sparse_cosines("blue", ["red apple", ""]).tolist() == [0, 0]
    assert sparse_cosines("?!", ["red"]).tolist() == [0]
    assert sparse_cosines("red", []).tolist() == []


def test_a_passage_that_is_the_question_has_sparse_cosine_one() -> None:
    assert sparse_cosines("Red stone", ["red STONE!", "other"])[0] == pytest.approx(1)
