"""RAG-Fusion and DMQR-RAG, given a model's replies, rank as reciprocal rank fusion does by hand."""

from collections.abc import Sequence

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.records import Chunk, Hit
from kraq_dspy.retrievers import DMQRRetriever, RAGFusionRetriever
from kraq_dspy.retrievers.adapted import as_retriever

CHUNKS = {name: Chunk(name, "document", 0, 0, 1, name, 1, "") for name in "abcd"}
RANKINGS = {"question": "abc", "one": "bcd", "two words": "bda"}


def find(query: str, k: int = 10) -> list[Hit]:
    """What each search finds; another query raises KeyError."""
    return [Hit(CHUNKS[name], 1 - rank / 10, "found") for rank, name in enumerate(RANKINGS[query])]


def by_hand(searches: Sequence[str]) -> dict[str, float]:
    scores = dict.fromkeys("abcd", 0.0)
    for search in searches:
        for rank, name in enumerate(RANKINGS[search], start=1):
            scores[name] += 1 / (60 + rank)
    return {name: score for name, score in scores.items() if score}


@pytest.mark.parametrize(
    ("retriever", "replies", "searches"),
    [
        (
            RAGFusionRetriever(as_retriever(find), count=2),
            [{"searches": '["one", "two words"]'}],
            ["question", "one", "two words"],
        ),
        (RAGFusionRetriever(as_retriever(find), count=1), [{"searches": '["one", "two words"]'}], ["question", "one"]),
        (
            DMQRRetriever(as_retriever(find)),  # the model chooses two of the four rewritings
            [{"rewritings": '["keywords", "core"]'}, {"keywords": '["two", "words"]'}, {"core": "one"}],
            ["question", "two words", "one"],
        ),
        (
            DMQRRetriever(as_retriever(find), adaptive=False),
            [{"rewritten": "question"}, {"keywords": "[]"}, {"guess": "one"}, {"core": "two words"}],
            ["question", "one", "two words"],
        ),
    ],
    ids=["fusion", "fusion-of-one", "dmqr", "dmqr-all"],
)
def test_the_ranking_is_that_of_the_formula(
    retriever: dspy.Module, replies: list[dict[str, str]], searches: list[str]
) -> None:
    with dspy.context(lm=DummyLM(replies)):
        hits = retriever("question", 4)
    expected = by_hand(searches)
    assert {hit.chunk.id: hit.score for hit in hits} == pytest.approx(expected)
    assert [expected[hit.chunk.id] for hit in hits] == sorted(expected.values(), reverse=True)
