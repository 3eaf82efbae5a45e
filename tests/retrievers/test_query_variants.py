"""RAG-Fusion and DMQR-RAG: what a model makes of a question is searched with, and the rankings are fused."""

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.retrievers import DenseRetriever, DMQRRetriever, RAGFusionRetriever
from kraq_dspy.retrievers.rewritten import FusedSearches
from tests.programs.conftest import Library

QUESTION = "castle"


@pytest.fixture
def dense(library: Library) -> DenseRetriever:
    return DenseRetriever(library.records, library.chunk_vectors, library.embedder)


def fused_by_hand(library: Library, dense: DenseRetriever, *searches: str) -> dict[str, float]:
    """Title -> the sum of 1 / (60 + rank) over the rankings of all searches."""
    rankings = [library.names(dense(search, 9)) for search in searches]
    return {name: sum(1 / (61 + ranking.index(name)) for ranking in rankings) for name in rankings[0]}


def scores(library: Library, retriever: FusedSearches, lm: DummyLM) -> dict[str, float]:
    with dspy.context(lm=lm):
        return {hit.chunk.title: hit.score for hit in retriever(QUESTION, 9)}


def test_all_variants_are_searched_with_and_fused(library: Library, dense: DenseRetriever) -> None:
    lm = DummyLM([{"searches": '["music", "river bridge"]'}])
    found = scores(library, RAGFusionRetriever(dense, count=2), lm)
    assert found == pytest.approx(fused_by_hand(library, dense, QUESTION, "music", "river bridge"))
    assert "2" in lm.history[0]["messages"][-1]["content"]  # the count


def test_no_more_variants_are_searched_with_than_were_wanted(library: Library, dense: DenseRetriever) -> None:
    lm = DummyLM([{"searches": '["music", "river", "bridge"]'}])
    found = scores(library, RAGFusionRetriever(dense, count=1), lm)
    assert found == pytest.approx(fused_by_hand(library, dense, QUESTION, "music"))


def test_a_variant_that_repeats_the_question_counts_once(library: Library, dense: DenseRetriever) -> None:
    lm = DummyLM([{"searches": '["Castle", " castle ", "", "music", "MUSIC"]'}])
    found = scores(library, RAGFusionRetriever(dense, count=5), lm)
    assert found == pytest.approx(fused_by_hand(library, dense, QUESTION, "music"))


ALL_FOUR = [
    {"rewritten": "castle hall"}, {"keywords": '["castle", "music"]'}, {"guess": "The river."}, {"core": "bridge"},
]  # fmt: skip


def test_four_rewritings_are_searched_with_where_the_model_does_not_choose(
    library: Library, dense: DenseRetriever
) -> None:
    retriever = DMQRRetriever(dense, adaptive=False)
    for step, reply in zip(
        (retriever.rewrite, retriever.keywords, retriever.guess, retriever.condense), ALL_FOUR, strict=True
    ):
        step.lm = DummyLM([reply])
    found = scores(library, retriever, DummyLM([]))
    expected = fused_by_hand(library, dense, QUESTION, "castle hall", "castle music", "The river.", "bridge")
    assert found == pytest.approx(expected)


def test_the_model_chooses_among_them(library: Library, dense: DenseRetriever) -> None:
    lm = DummyLM([{"rewritings": '["core"]'}, {"core": "bridge"}])
    assert scores(library, DMQRRetriever(dense), lm) == pytest.approx(fused_by_hand(library, dense, QUESTION, "bridge"))


def test_a_clear_question_is_searched_with_alone(library: Library, dense: DenseRetriever) -> None:
    lm = DummyLM([{"rewritings": "[]"}])
    with dspy.context(lm=lm):
        assert library.names(DMQRRetriever(dense)(QUESTION, 4)) == library.names(dense(QUESTION, 4))


@pytest.mark.parametrize("kind", [RAGFusionRetriever, DMQRRetriever])
def test_a_model_that_fails_leaves_the_question(
    kind: type[FusedSearches], library: Library, dense: DenseRetriever
) -> None:
    with dspy.context(lm=DummyLM({"nothing": {"fits": "here"}})):
        assert library.names(kind(dense)(QUESTION, 4)) == library.names(dense(QUESTION, 4))


def test_bad_settings_are_refused(dense: DenseRetriever) -> None:
    with pytest.raises(ValueError, match="count is 0"):
        RAGFusionRetriever(dense, count=0)
