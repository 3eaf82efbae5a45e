import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.errors import BudgetExceededError
from kraq_dspy.programs.retrievers import DenseRetriever, RewrittenRetriever
from kraq_dspy.programs.retrievers.rewritten import Clarify, Vary
from tests.programs.conftest import Library

QUESTION = "castle"


@pytest.fixture
def dense(library: Library) -> DenseRetriever:
    return DenseRetriever(library.records, library.chunk_vectors, library.embedder)


def test_the_question_and_its_rewriting_are_searched_with_and_their_rankings_fused(
    dense: DenseRetriever, library: Library
) -> None:
    with dspy.context(lm=DummyLM([{"rewritten": "music"}])):
        hits = RewrittenRetriever(dense, Clarify(), constant=0)(QUESTION, 3)
    ranks = [library.names(dense(search, 9)) for search in (QUESTION, "music")]
    expected = {name: sum(1 / (1 + ranking.index(name)) for ranking in ranks) for name in ranks[0]}
    assert {hit.chunk.title: hit.score for hit in hits} == {hit.chunk.title: expected[hit.chunk.title] for hit in hits}
    assert [hit.score for hit in hits] == sorted(expected.values(), reverse=True)[:3]
    assert {(hit.query, hit.why) for hit in hits} == {(QUESTION, "rewritten")}


def test_rag_fusion_searches_with_as_many_as_were_asked_for_each_once(dense: DenseRetriever) -> None:
    replies = {"searches": '["Music?", "castle ", "", "music?", "bridge", "river", "more"]'}
    lm = DummyLM([replies])
    with dspy.context(lm=lm):
        assert RewrittenRetriever(dense, Vary(count=3)).searches(QUESTION) == ["Music?", "bridge", "river"]
    assert "[[ ## count ## ]]\n3" in lm.history[-1]["messages"][-1]["content"]


def test_no_rewriting_is_no_error(dense: DenseRetriever, library: Library) -> None:
    with dspy.context(lm=DummyLM([{"rewritten": QUESTION}])):
        hits = RewrittenRetriever(dense, Clarify())(QUESTION, 4)
    assert library.names(hits) == library.names(dense(QUESTION, 4))


def test_a_model_that_fails_leaves_the_question(dense: DenseRetriever, library: Library) -> None:
    with dspy.context(lm=DummyLM({"nothing": {"fits": "here"}})):
        hits = RewrittenRetriever(dense, Clarify())(QUESTION, 4)
    assert library.names(hits) == library.names(dense(QUESTION, 4))


class Spent(dspy.Module):
    def forward(self, question: str) -> dspy.Prediction:
        raise BudgetExceededError("no calls are left")


def test_a_spent_budget_ends_the_search(dense: DenseRetriever) -> None:
    with pytest.raises(BudgetExceededError):
        RewrittenRetriever(dense, Spent())(QUESTION, 4)


def test_bad_settings_are_refused(dense: DenseRetriever) -> None:
    with pytest.raises(ValueError, match="pool is 0"):
        RewrittenRetriever(dense, Clarify(), pool=0)
    with pytest.raises(ValueError, match="count is 0"):
        Vary(count=0)
