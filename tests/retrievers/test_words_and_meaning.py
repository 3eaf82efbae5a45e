"""Tests dense, sparse and hybrid retrieval and fusion on scores that can be worked out by hand."""

import math

import pytest

from kraq_dspy.retrievers import BM25Retriever, DenseRetriever, FusionRetriever, HybridRetriever
from kraq_dspy.retrievers.words_and_meaning import sparse_cosines
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


def test_figures_that_the_question_does_not_name_make_a_table_no_longer() -> None:
    words, table = "net income of the north", "net income north | 2018 | 2019 | 831.7 | 8.7 | 840.4 | 1,571.7 | 3.1"
    cosines = sparse_cosines("What was the net income in 2019?", [words, table, "other words"])
    assert cosines[1] > cosines[0]
    assert sparse_cosines("net income", ["net income 2018", "other"])[0] == pytest.approx(1)
    assert sparse_cosines("831", ["831 840", "other"])[0] == pytest.approx(1)


def test_a_passage_that_is_the_question_has_sparse_cosine_one() -> None:
    assert sparse_cosines("Red stone", ["red STONE!", "other"])[0] == pytest.approx(1)


def test_only_passages_that_share_a_word_are_found(library: Library) -> None:
    retrieve = BM25Retriever(library.records, library.chunk_vectors)
    hits = retrieve("stone hill", 9)
    assert set(library.names(hits)) == {"span", "keep"}
    assert all(hit.score > 0 and hit.why == "bm25" for hit in hits)


def test_a_question_of_unknown_words_finds_nothing(library: Library) -> None:
    assert BM25Retriever(library.records, library.chunk_vectors)("xylophone", 5) == []


def test_the_nearest_passages_come_first_with_their_cosine(library: Library) -> None:
    retrieve = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    hits = retrieve("bridge and castle", 2)
    assert library.names(hits)[0] == "gate"  # the only passage with both words: cosine 1
    assert hits[0].score == 1.0 or abs(hits[0].score - 1) < 1e-6
    assert abs(hits[1].score - 0.5**0.5) < 1e-6  # one of the two words
    assert {(hit.query, hit.why) for hit in hits} == {("bridge and castle", "dense")}


def test_a_vector_that_is_given_decides_instead_of_the_text(library: Library) -> None:
    retrieve = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    vector = library.embedder.encode_queries(["music"])[0]
    assert library.names(retrieve("bridge", 1, vector=vector)) == ["song"]


def test_passages_that_tie_come_in_the_order_of_their_ids(library: Library) -> None:
    retrieve = DenseRetriever(library.records, library.chunk_vectors, library.embedder)
    hits = retrieve("castle", 3)  # only "keep" has nothing but the castle; "gate" and "hall" have one word more
    tied = sorted([library.id("gate"), library.id("hall")])
    assert [hit.chunk.id for hit in hits] == [library.id("keep"), *tied]
