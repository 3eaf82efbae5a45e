"""Tests that a question and its rewriting are searched with, and that a failed rewriting costs nothing."""

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.errors import BudgetExceededError
from kraq_dspy.retrievers import DenseRetriever, RewrittenRetriever
from tests.programs.conftest import Library

QUESTION = "castle"


@pytest.fixture
def dense(library: Library) -> DenseRetriever:
    return DenseRetriever(library.records, library.chunk_vectors, library.embedder)


def test_the_question_and_its_rewriting_are_searched_with_and_their_rankings_fused(
    dense: DenseRetriever, library: Library
) -> None:
    with dspy.context(lm=DummyLM([{"rewritten": "music"}])):
        hits = RewrittenRetriever(dense, constant=0)(QUESTION, 3)
    ranks = [library.names(dense(search, 9)) for search in (QUESTION, "music")]
    expected = {name: sum(1 / (1 + ranking.index(name)) for ranking in ranks) for name in ranks[0]}
    assert {hit.chunk.title: hit.score for hit in hits} == {hit.chunk.title: expected[hit.chunk.title] for hit in hits}
    assert [hit.score for hit in hits] == sorted(expected.values(), reverse=True)[:3]
    assert {(hit.query, hit.why) for hit in hits} == {(QUESTION, "rewritten")}


def test_no_rewriting_is_no_error(dense: DenseRetriever, library: Library) -> None:
    with dspy.context(lm=DummyLM([{"rewritten": QUESTION}])):
        hits = RewrittenRetriever(dense)(QUESTION, 4)
    assert library.names(hits) == library.names(dense(QUESTION, 4))


def test_a_model_that_fails_leaves_the_question(dense: DenseRetriever, library: Library) -> None:
    with dspy.context(lm=DummyLM({"nothing": {"fits": "here"}})):
        hits = RewrittenRetriever(dense)(QUESTION, 4)
    assert library.names(hits) == library.names(dense(QUESTION, 4))


class Spent(dspy.Module):
    def forward(self, question: str) -> dspy.Prediction:
        raise BudgetExceededError("no calls are left")


def test_a_spent_budget_ends_the_search(dense: DenseRetriever) -> None:
    retriever = RewrittenRetriever(dense)
    retriever.rewrite = Spent()  # type: ignore[assignment]
    with pytest.raises(BudgetExceededError):
        retriever(QUESTION, 4)


def test_bad_settings_are_refused(dense: DenseRetriever) -> None:
    with pytest.raises(ValueError, match="pool is 0"):
        RewrittenRetriever(dense, pool=0)
